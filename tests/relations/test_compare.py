"""Statements compared: the same, changed, or contradicted."""

import pytest

from memgraph.model.enums import Relation
from memgraph.relations.compare import compare, search_words
from memgraph.relations.statement import RelationFinding, Statement, quote

OTHER_VALUES = [
    ("The deposit is 50 euros.", "The deposit is 80 euros."),
    ("The build server listens on port 7000.", "The build server listens on port 7100."),
    ("The choir meets on Tuesdays.", "The choir meets on Thursdays."),
    ("Rosa lives in Turin.", "Rosa lives in Genoa."),
    ("Our tax adviser is Ms. Brandt.", "Our tax adviser is Mr. Oduya."),
    ("The wiki is hosted on Linode.", "The wiki is hosted on Hetzner."),
    ("The gym opens at 6:30.", "The gym opens at 7:00."),
    ("Log files are kept for 30 days.", "Log files are kept for 90 days."),
    ("Marek leads the data team.", "Yuki leads the data team."),
    ("The order service runs on MySQL.", "The order service runs on PostgreSQL."),
    ("The lobby is open on Sundays.", "The lobby is closed on Sundays."),
    ("The mail relay is smtp1.example.org.", "The mail relay is smtp4.example.org."),
    ("Interns may sign contracts.", "Interns must not sign contracts."),
    ("We always tag releases.", "We never tag releases."),
    ("Badges are mandatory in the lab.", "Badges are optional in the lab."),
    ("Der Kurs beginnt um 9 Uhr.", "Der Kurs beginnt um 10 Uhr."),
    ("The permit runs until the end of March.", "The permit runs until the end of May."),
    ("Rent for the hall is 840 euros a month.", "Rent for the hall is 910 euros a month."),
]
CHANGES = [
    ("Rosa lives in Turin.", "Rosa moved to Genoa."),
    ("The retro is at 14:00.", "The retro was moved to 15:30."),
    ("The wiki is hosted on Linode.", "The wiki was migrated from Linode to Hetzner."),
    ("Marek plays drums in Copper Kettle.", "Marek left Copper Kettle."),
    ("We use Trello for planning.", "We no longer use Trello for planning."),
    ("My dentist is Dr. Haas.", "My new dentist is Dr. Lind."),
    ("The night build is written in Bash.", "The night build has been rewritten in Rust."),
    ("Invoices need two signatures.", "Invoices no longer need two signatures."),
    ("The cluster runs Kubernetes 1.28.", "The cluster was upgraded to Kubernetes 1.30."),
]
COMPATIBLE = [
    ("The staging server has 8 GB of memory.", "The production server has 32 GB of memory."),
    ("Rosa speaks Italian.", "Rosa speaks French."),
    ("Rosa lives in Turin.", "Marek lives in Genoa."),
    ("My brother lives in Turin.", "My aunt lives in Genoa."),
    ("In 2018 the club had 40 members.", "Today the club has 75 members."),
    ("At least 4 GB of memory are required.", "8 GB of memory are recommended."),
    ("Access keys expire after 90 days.", "Session cookies expire after 12 hours."),
    ("Rosa thinks we should use Redis.", "Marek thinks we should use Memcached."),
    ("The exporter supports CSV.", "The exporter supports JSON."),
    ("Rosa is responsible for travel.", "Rosa is responsible for catering."),
    ("The meeting is on Monday.", "The meeting is at 10:00."),
    ("Version 2 requires Java 11.", "Version 3 requires Java 17."),
    ("Node 4 has 64 GB of memory.", "Node 5 has 128 GB of memory."),
    ("The setting is required.", "This setting is optional."),
    ("The intern may restart the queue.", "The intern restarts the queue."),
    ("Rosa had soup on Monday.", "Rosa had pasta on Tuesday."),
    ("The museum is closed on Mondays.", "The museum is open on Tuesdays."),
    ("The flight from Turin leaves at 9:00.", "The flight to Turin leaves at 11:00."),
]
SAME = [
    ("The cache keeps entries for 60 minutes.", "The cache keeps entries for 1 hour."),
    ("The limit is 2,000 MB.", "The limit is 2 GB."),
    ("The concert begins at 8 pm.", "The concert begins at 20:00."),
    ("The report is sent weekly.", "The report is sent every week."),
    ("Rosa lives in Turin.", "Rosa now lives in Turin."),
    ("The lease ends on 3 March 2027.", "The lease ends on 2027-03-03."),
    ("The van seats seven.", "The van seats 7."),
    ("A ticket is valid for 24 hours.", "A ticket is valid for one day."),
]
# Each has words beside what is compared; where they differ, nobody says the same.
NOT_THE_SAME = [
    ("After the move, the shop opens at 9.", "After the flood, the shop opens at 9."),
    ("The pool is closed until we know more.", "The pool is closed until the town decides."),
]
CLAIMING_CHANGE = {Relation.UPDATES, Relation.CONTRADICTS}


def _compare(a: str, b: str) -> RelationFinding | None:
    return compare(Statement(a, 1), Statement(b, 2))


@pytest.mark.parametrize(("a", "b"), OTHER_VALUES)
def test_another_value_of_one_attribute_contradicts(a: str, b: str) -> None:
    finding = _compare(a, b)
    assert finding is not None
    assert finding.relation is Relation.CONTRADICTS
    assert not finding.changed
    assert " / " in finding.reason


@pytest.mark.parametrize(("a", "b"), CHANGES)
def test_a_stated_change_updates(a: str, b: str) -> None:
    finding = _compare(a, b)
    assert finding is not None
    assert finding.relation is Relation.UPDATES
    assert finding.changed
    assert finding.reason


@pytest.mark.parametrize(("a", "b"), COMPATIBLE)
def test_what_can_both_hold_is_no_change(a: str, b: str) -> None:
    finding = _compare(a, b)
    assert finding is None or finding.relation not in CLAIMING_CHANGE


@pytest.mark.parametrize(("a", "b"), SAME)
def test_one_value_in_two_notations_is_a_duplicate(a: str, b: str) -> None:
    finding = _compare(a, b)
    assert finding is not None
    assert finding.relation is Relation.DUPLICATE


@pytest.mark.parametrize(("a", "b"), NOT_THE_SAME)
def test_what_differs_beside_the_main_clause_is_no_duplicate(a: str, b: str) -> None:
    assert _compare(a, b) is None


@pytest.mark.parametrize("b", ["Anna lives in Oslo now.", "Anna's home is in Oslo."])
def test_a_home_is_where_somebody_lives(b: str) -> None:
    finding = _compare("Anna lives in Oslo.", b)
    assert finding is not None
    assert finding.relation is Relation.DUPLICATE
    moved = _compare("Anna's home is in Bergen.", b)
    assert moved is not None
    assert moved.reason == "same subject and attribute, other value: Bergen / Oslo"


def test_the_reason_names_both_values() -> None:
    finding = _compare("Log files are kept for 30 days.", "Log files are kept for 90 days.")
    assert finding is not None
    assert finding.reason == "same subject and attribute, other value: 30 days / 90 days"


def test_the_same_words_are_a_duplicate() -> None:
    finding = _compare("Backups run nightly.", "backups run  nightly")
    assert finding is not None
    assert finding.relation is Relation.DUPLICATE
    assert finding.reason


def test_first_persons_of_two_speakers_are_not_compared() -> None:
    tea = Statement("I like tea.", speaker="Ann")
    assert compare(tea, Statement("I like tea.", speaker="Ben")) is None
    ours = Statement("Our office is in Oslo.", speaker="Ann")
    assert compare(ours, Statement("Our office is in Rome.", speaker="Ben")) is None


def test_a_speaker_is_the_one_whom_i_means() -> None:
    finding = compare(Statement("I live in Oslo.", speaker="Ann"), Statement("Ann lives in Porto."))
    assert finding is not None
    assert finding.relation is Relation.CONTRADICTS


def test_a_question_says_nothing() -> None:
    assert _compare("The deposit is 50 euros.", "The deposit is 80 euros?") is None


def test_a_quotation_is_read_as_its_speakers_words() -> None:
    content = quote("Ann", "I live in “old” Oslo.", "2024-01-10")
    assert content == 'Ann: “I live in "old" Oslo.” (2024-01-10)'
    assert Statement.of(content, 5) == Statement('I live in "old" Oslo.', 5, "Ann")


def test_search_words_name_the_subject_before_the_value() -> None:
    words = search_words(Statement("The retro of team Falcon is at 14:00."))
    assert words[-1] == "14:00"
    assert {"retro", "falcon"} <= set(words[:3])


@pytest.mark.parametrize("text", ["a " * 16_000, "1" * 32_000, "every " * 200, "(" * 230, ""])
def test_hostile_texts_are_read_without_delay(text: str) -> None:
    assert _compare(text, "The deposit is 80 euros.") is None
