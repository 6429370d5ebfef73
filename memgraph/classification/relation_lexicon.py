"""Closed word lists for telling how two statements relate.

English first; German, French, Spanish and Japanese as far as short notes need them. Every list is
lower case. Words are matched as typed and by their stem (``relation_tokens.stem``).
"""

from __future__ import annotations

from typing import Final


def words(text: str) -> frozenset[str]:
    """The space-separated words of a text as a set."""
    return frozenset(text.split())


STOP: Final = words(
    "a an the this that these those there here it its he she they we i you me him her them us "
    "my your his our their mine ours theirs is are was were be been being am do does did done "
    "has have had having will would shall should can could may might must of in on at to for from "
    "by with as into onto over under about after before between during through up down out off "
    "and or but if so than then when while where which who whom whose what how why because since "
    "until till also too very just even still yet already again any some such own same other "
    "another both each every all more most much many few less least now ever s t d ll re ve m "
    "get gets got getting go goes went gone let lets as well per via like "
    "der die das ein eine einen einem einer eines des den dem und oder aber ist sind war waren "
    "wird werden wurde hat haben im am auf aus bei bis für mit nach von vom vor zu zum zur "
    "über unter er sie es wir ihr ich sich auch noch schon nur sehr "
    "le la les un une du de l et ou mais est sont était ont au aux en dans sur par pour "
    "avec il elle ils elles nous vous je ce cette ces se sa son ses qui que à depuis "
    "el los las unos unas y o pero es fue ha han del al con por para su sus lo como desde ya"
)

# Verbs and nouns so common that sharing them says little about a common topic.
LIGHT: Final = words(
    "use uses used using make makes made take takes took taken come comes came give gives gave "
    "given put puts keep keeps kept want wants wanted need needs needed say says said tell told "
    "think thinks thing things way time times day days week weeks month months year years one ones "
    "new old good work works working run runs running start starts begin begins set sets stay "
    "people person user users team everyone everybody anybody anyone someone somebody lot bit "
    "two three four five six seven eight nine ten first second last next morning evening night "
    "yesterday today tomorrow always never only nothing nobody currently usually "
    "roughly about around exactly least most half hour hours minute minutes"
)

NEGATORS: Final = words(
    "not no never nobody none nothing nowhere neither nor cannot without dont doesnt didnt isnt "
    "arent wasnt werent wont cant couldnt hasnt havent hadnt shouldnt wouldnt mustnt don't doesn't "
    "didn't isn't aren't wasn't weren't won't can't couldn't hasn't haven't hadn't shouldn't "
    "wouldn't mustn't needn't hardly ain't "
    "nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder "
    "pas jamais aucun aucune rien personne sans ne n "
    "nunca nadie ningún ninguna ninguno nada sin tampoco jamás"
)

# Words that carry a "no" of their own; with a negator they cancel out.
NEGATIVE: Final = words(
    "forbidden prohibited banned impossible unable refuse refuses refused reject rejects rejected "
    "deny denied decline declined lack lacks lacking missing absent fail fails failed failing "
    "failure broken dead "
    "disabled excluded exclude excludes against cancelled canceled unpaid unsigned unhashed "
    "optional voluntary unencrypted unlimited unknown incomplete incompatible avoid avoids hate "
    "hates dislike dislikes stop stopped quit closed off free fear afraid ruled lost unsupported "
    "prevent prevents forbids forbid wrong false untrue impossible locked blocked unavailable "
    "verboten kaputt defekt geschlossen interdit fermé cerrado prohibido caído abgeschaltet"
)

ABSOLUTE: Final = words(
    "all every always never only nobody none nothing everyone everybody everything entirely "
    "strictly whole completely exclusively solely any anyone anybody sole whatsoever whatever "
    "single just ever alone fully purely everywhere nowhere without immer nie alle jeder niemand "
    "nur toujours jamais tous aucun aucune siempre nunca todos nadie ningún solo"
)

# Said of what has been so all the time: such a b does not report a change.
PERSISTENCE_PHRASES: Final = (
    "has always", "have always", "had always", "always did", "always has", "always been",
    "always was", "from the beginning", "from the start", "from day one", "from the first",
    "all along", "never was", "has never", "have never", "was never", "were never", "never been",
    "ever since", "so far", "not a single", "nothing to do with", "has ever", "have ever",
    "as usual", "as on any other", "from version one", "since it was", "in all these years",
    "immer schon", "noch nie", "n'a jamais", "n'est jamais", "nunca ha", "一度も", "original",
    "for years", "every single", "only ever", "not the", "at the same", "that very", "at that",
)  # fmt: skip

CHANGE_PHRASES: Final = (
    "no longer", "not any more", "not anymore", "any more", "anymore", "any longer", "by now",
    "from now on", "from here on", "as of", "starting with", "starting this", "starting from",
    "since the", "since last", "since yesterday", "since monday", "since tuesday",
    "since wednesday", "since thursday", "since friday", "instead of", "in place of",
    "after all", "change of plan", "changed", "switched", "switch to", "moved", "has moved",
    "migrated", "upgraded", "downgraded", "replaced", "raised", "lowered", "reduced", "extended",
    "shortened", "postponed", "adjourned", "delayed", "pushed back", "brought forward",
    "rescheduled", "cancelled", "went up", "is up to", "is down to", "are down to", "went down",
    "has dropped", "dropped", "has risen", "has grown", "has fallen", "jumped to", "doubled",
    "halved", "ramped", "rewritten", "relicensed", "removed", "retired", "resigned",
    "stepped down", "took over", "taken over", "handed over", "handed the", "gave up", "given up",
    "quit", "stopped", "is back", "are back", "back on", "back to", "these days", "nowadays",
    "lately", "has become", "became", "went over", "turned out", "is off", "works again",
    "running again", "open again", "up again", "again since", "drinks", "has started",
    "have started", "started", "got used to", "new", "was added", "added", "got its first",
    "opened a", "done away", "was lifted", "lifted", "came down", "has come down", "come round",
    "changed his mind", "changed her mind", "came back to", "went back to", "took back",
    "withdrawn", "withdrew", "revoked", "granted", "swapped", "traded", "sold", "bought",
    "relocated", "sorry", "correction", "i misread", "misread", "my mistake", "i was wrong",
    "typo", "wrongly", "i counted", "was wrong", "disabled", "enabled", "was switched",
    "switched off", "turned off", "turned on", "turned up", "turned down to", "went live",
    "is out", "was released", "rolled out", "for the rest", "now", "from this", "this year on",
    "from next", "from january", "from february", "from march", "from april", "from may",
    "from june", "from july", "from august", "from september", "from october", "from november",
    "from december", "as from", "effective", "meanwhile", "in the meantime", "until recently",
    "used to", "formerly", "at last", "finally", "passed", "reached", "this morning",
    "last night", "over the weekend", "last week", "last month", "last quarter", "went to",
    "gave birth", "had her baby", "moved in", "moved away", "moved back", "left",
    "inzwischen", "mittlerweile", "nicht mehr", "kein mehr", "jetzt", "ab sofort", "neuerdings",
    "seit", "umgestellt", "abgeschaltet", "repariert", "wieder", "wurde", "verschoben", "verlegt",
    "désormais", "maintenant", "ne plus", "n'est plus", "plus de", "depuis janvier", "déplacé",
    "déplacée", "a été", "réparé", "réparée", "dorénavant", "ya no", "ahora", "a partir de",
    "ya volvió", "ya ha", "se mudó", "este año", "cambió", "ya está", "desde enero",
    "になりました", "変更", "やめて", "今は", "もう", "今日から", "引っ越し", "来月から",
)  # fmt: skip

# "Only x" and "nobody but x" say one thing, whichever of them is negated.
EXCLUSIVE: Final = (
    "only", "nobody else", "no one else", "nothing else", "nothing but", "nobody but", "no one but",
    "apart from", "other than", "except", "except for", "unless", "solely", "exclusively", "alone",
    "without", "any but", "reserved", "no other", "nowhere else", "nur", "außer", "sauf",
    "seulement", "solo", "excepto", "just", "by himself", "by herself", "by themselves", "sole",
    "not more than", "no more than", "not until", "must", "has to", "have to", "needs", "always",
)  # fmt: skip

COLOURS: Final = words(
    "red green blue yellow black white brown grey gray orange purple pink silver gold"
)

# The strongest of them: each says by itself that something else held before.
STRONG_CHANGE_PHRASES: Final = (
    "no longer", "any more", "anymore", "any longer", "by now", "from now on", "from here on",
    "as of", "instead of", "in place of", "after all", "change of plan", "is down to",
    "are down to", "is up to", "went up", "went down", "pushed back", "postponed", "adjourned",
    "rescheduled", "upgraded", "migrated", "relocated", "switched", "replaced", "changed",
    "extended", "shortened", "raised", "lowered", "these days", "nowadays", "lately", "sorry",
    "correction", "misread", "used to", "back to", "back on", "moved to", "was moved",
    "has moved", "have moved", "stepped down", "gave up", "given up", "works again", "again since",
    "since the", "starting with", "is back", "are back", "now", "meanwhile", "revoked", "lifted",
    "inzwischen", "mittlerweile", "nicht mehr", "ab sofort", "jetzt", "désormais", "maintenant",
    "n'est plus", "ne plus", "déplacé", "ya no", "ahora", "ya volvió", "になりました", "変更",
    "今は", "やめて",
)  # fmt: skip

OPEN_TASK: Final = (
    "todo", "to do", "needs to", "need to", "has to", "have to", "must", "remember to", "promised",
    "waiting", "still", "pending", "not yet", "hasn't", "haven't", "is open", "still open",
    "somebody", "someone", "owe", "should", "goal", "wants to", "expecting", "is being",
    "under review", "negotiat", "scheduled", "due", "planned", "plan", "intend", "broken", "is on",
    "muss noch", "il faut", "hay que", "pendiente", "down", "has conflicts", "blocked", "expires",
)  # fmt: skip

DONE: Final = (
    "done", "finished", "merged", "fixed", "signed", "renewed", "paid", "arrived", "delivered",
    "sent", "is out", "cleared", "repaired", "solved", "resolved", "completed", "reached",
    "ordered", "closed", "settled", "answered", "accepted", "rebased", "booked", "got", "went out",
    "has been", "have been", "passed", "came", "installed", "shipped", "submitted", "approved",
    "granted", "erledigt", "repariert", "bezahlt", "réparé", "fait", "terminé", "hecho", "listo",
    "完了", "終わりました", "gave birth", "stood on", "watered", "filed", "cleaned", "written",
    "published", "launched", "gone", "wrapped up",
)  # fmt: skip

CORRECTION: Final = (
    "sorry", "correction", "misread", "my mistake", "i was wrong", "typo", "i meant",
    "scratch that",
    "mixed up", "mistaken", "wrong sheet", "korrektur", "verlesen", "erratum", "je me suis trompé",
    "me equivoqué", "misheard", "miscounted", "wrong column", "counted from",
)  # fmt: skip

# A limit, a share or a mean is another attribute than the amount itself.
BOUND: Final = {
    "max": words("most maximum max maximal limit limits limited cap capped capacity up höchstens "
                  "maximal exceed ceiling budget allowance quota longer larger bigger over above"),
    "min": words("least minimum min minimal fewer below under mindestens minimum"),
    "mean": words("average mean averages median p50 typical typically durchschnitt moyenne"),
    "total": words("total sum altogether overall gesamt spent far"),
    "tail": words("p99 p95 percentile slowest peak worst"),
}  # fmt: skip

ENVIRONMENTS: Final = {
    "prod": "production", "production": "production", "live": "production",
    "produktion": "production", "staging": "staging", "stage": "staging", "test": "test",
    "tests": "test", "testing": "test", "dev": "development", "development": "development",
    "sandbox": "sandbox", "preview": "preview", "canary": "canary", "local": "local",
    "web": "web", "mobile": "mobile", "api": "api", "linux": "linux", "windows": "windows",
    "macos": "macos", "android": "android", "ios": "ios", "arm": "arm", "x86": "x86",
}  # fmt: skip

WEEKDAYS: Final = {
    word: number
    for number, forms in enumerate(
        ("monday mon montag montags lundi lunes 月曜日",
        "tuesday tue dienstag dienstags mardi martes 火曜日",
         "wednesday wed mittwoch mittwochs mercredi miércoles 水曜日",
         "thursday thu donnerstag donnerstags jeudi jueves 木曜日",
         "friday fri freitag freitags vendredi viernes 金曜日",
         "saturday sat samstag samstags samedi sábado 土曜日",
         "sunday sun sonntag sonntags dimanche domingo 日曜日")
    )
    for word in forms.split()
}  # fmt: skip

MONTHS: Final = {
    word: number
    for number, forms in enumerate(
        ("january jan januar janvier enero", "february feb februar février febrero",
         "march mar märz mars marzo", "april apr avril abril", "may mai mayo",
         "june jun juni juin junio", "july jul juli juillet julio", "august aug août agosto",
         "september sep sept septembre septiembre", "october oct oktober octobre octubre",
         "november nov novembre noviembre", "december dec dezember décembre diciembre"),
        start=1,
    )
    for word in forms.split()
}  # fmt: skip

DAY_PARTS: Final = {
    "morning": "morning", "mornings": "morning", "afternoon": "afternoon",
    "afternoons": "afternoon", "evening": "evening", "evenings": "evening", "night": "night",
    "nights": "night", "noon": "noon", "midnight": "midnight", "weekday": "weekday",
    "weekdays": "weekday", "weekend": "weekend", "weekends": "weekend", "easter": "easter",
    "christmas": "christmas", "spring": "spring", "summer": "summer", "autumn": "autumn",
    "winter": "winter",
}  # fmt: skip

# Nouns whose number names a thing rather than measures it.
ID_NOUNS: Final = words(
    "incident ticket pr issue invoice build room table hall bus tram line flight gate floor week "
    "aisle exit host worker node phase epoch version release case order contract paragraph section "
    "chapter page terminal platform zone rack step sprint commit patch lot unit apartment "
    "flat house highway route track channel level grade class stage round q quarter halle raum "
    "zimmer rechnung bus linie postmortem line no number nr # kapitel salle facture clause article "
    "batch lot sample rev revision lesson item figure appendix annex question option group run "
    "experiment episode season volume tier bed locker box request job task story bug cluster shelf "
    "bay dock pier pump tank lane cabin seat row layer block sensor meter unit site store camera "
    "printer machine plot area grade part article cell switch firewall klausel artikel étage "
    "planta "
    "article chapitre factura pedido habitación"
)

_ANTONYMS: Final = (
    "on/off open/closed open/close opens/closes opened/closed opening/closing enabled/disabled "
    "enable/disable up/down allowed/forbidden allowed/banned allowed/prohibited allow/forbid "
    "permitted/forbidden accept/reject accepts/rejects accepted/rejected accepts/refuses "
    "accepted/declined approve/reject approved/rejected approved/denied love/hate loves/hates "
    "likes/dislikes like/hate likes/hates enjoys/hates favourite/hates free/pay free/paid "
    "free/paying free/costs free/charge "
    "synchronous/asynchronous sync/async synchronously/asynchronously manual/automatic "
    "manually/automatically hand/automatic hand/pipeline public/private public/internal "
    "public/confidential public/secret internal/external encrypted/plain encrypted/unencrypted "
    "encrypted/plaintext hashed/plain hashed/unhashed signed/unsigned open/proprietary "
    "optional/mandatory optional/required optional/compulsory voluntary/mandatory "
    "voluntary/compulsory optional/must mandatory/voluntary push/pull push/poll pushes/polls "
    "single/multiple single-threaded/multi-threaded single/many alone/together alone/shares "
    "first/last before/after earlier/later early/late morning/evening day/night days/nights "
    "left/right left-handed/right-handed more/less most/least minimum/maximum min/max "
    "increase/decrease increased/decreased rise/fall rose/fell grow/shrink grew/shrank "
    "higher/lower high/low faster/slower fast/slow bigger/smaller big/small larger/smaller "
    "large/small long/short longer/shorter taller/shorter tall/short older/younger old/new "
    "old/young hot/cold warm/cold wet/dry full/empty hard/soft heavy/light dark/light "
    "dark/bright wide/narrow deep/shallow thick/thin strong/weak rich/poor cheap/expensive "
    "won/lost win/lose success/failure succeeded/failed passes/fails pass/fail passed/failed "
    "succeed/fail works/broken working/broken works/fails fine/broken clean/broken "
    "complete/incomplete finished/unfinished done/open paid/open paid/unpaid paid/outstanding "
    "settled/open married/single married/divorced alive/dead present/absent include/exclude "
    "includes/excludes included/excluded covers/excludes covered/excluded with/without "
    "same/different equal/unequal true/false right/wrong correct/incorrect valid/invalid "
    "valid/expired good/bad better/worse best/worst safe/dangerous easy/difficult easy/hard "
    "possible/impossible able/unable everything/nothing everyone/nobody everybody/nobody "
    "all/none always/never everywhere/nowhere ever/never both/neither read/write "
    "read-only/write reads/writes client/server buy/sell bought/sold arrives/leaves "
    "arrive/leave arrival/departure start/end starts/ends begins/ends begin/end "
    "started/ended hired/fired joined/left stay/leave stays/leaves keep/delete kept/deleted "
    "keep/discard kept/discarded keeps/deletes stored/deleted kept/thrown keeps/drops "
    "optimistic/pessimistic little-endian/big-endian idempotent/duplicate fluent/understand "
    "for/against favour/against recommended/advised urged/advised success/cancelled "
    "took/cancelled indoors/outdoors inside/outside upstairs/downstairs attic/cellar "
    "north/south east/west horizontal/vertical ascending/descending odd/even raw/pasteurised "
    "raw/cooked vegetarian/meat vegan/meat vegan/dairy online/offline offline/connection "
    "compressed/uncompressed static/dynamic stateless/stateful mutable/immutable "
    "deterministic/random sequential/parallel serial/parallel local/remote centralised/distributed "
    "monolith/microservices permanent/temporary fixed/variable fixed/floating upper/lower "
    "user/system strict/lenient tolerates/rejects tolerates/fails backwards/breaks "
    "compatible/breaks occupied/vacant busy/idle awake/asleep healthy/sick ill/healthy "
    "employee/freelancer buyer/seller landlord/tenant guilty/innocent for/opposed male/female "
    "brother/sister mother/father son/daughter cash/card cash/cards paper/digital "
    "wiki/paper remote/office home/office only/any "
    "nimmt/lehnt erlaubt/verboten offen/geschlossen öffnet/schließt ein/aus funktioniert/kaputt "
    "funktioniert/defekt ouvre/ferme ouvert/fermé autorise/interdit autorisé/interdit marche/panne "
    "abre/cierra abierto/cerrado permitido/prohibido"
)


def _antonym_table(pairs: str) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in pairs.split():
        left, right = pair.split("/")
        table.setdefault(left, set()).add(right)
        table.setdefault(right, set()).add(left)
    return {word: frozenset(others) for word, others in table.items()}


ANTONYMS: Final = _antonym_table(_ANTONYMS)
