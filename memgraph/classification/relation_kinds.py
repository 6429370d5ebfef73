"""Words that cannot both hold of one thing: opposites, and two members of one kind.

A colour, a material, a fuel, a storage engine, a profession: "cooled with water" and "cooled with
gas" differ by two members of one kind, "cooled with water" and "cooled by night" don't. Opposites
come from the list of the lexicon or bear a prefix that denies: signed and unsigned.
"""

from __future__ import annotations

from typing import Final, Never

from memgraph.classification.relation_lexicon import ANTONYMS, words
from memgraph.classification.relation_tokens import Token, stem

_KINDS: Final = (
    "red green blue yellow black white brown grey gray orange purple pink silver gold beige",
    "wood wooden steel iron metal stone brick concrete glass plastic aluminium copper paper leather"
    " cotton wool silk nylon rubber clay ceramic bamboo slate marble granite timber carbon foam",
    "water gas oil air diesel petrol electric electricity coal solar wind hydrogen nuclear steam"
    " battery propane pellet biomass geothermal",
    "python java rust go golang ruby php perl scala kotlin swift typescript javascript c haskell"
    " elixir erlang julia lua cobol fortran clojure dart zig",
    "postgres postgresql mysql sqlite mariadb oracle mongodb redis cassandra dynamodb cockroachdb"
    " elasticsearch clickhouse duckdb memcached",
    "linux windows macos freebsd ubuntu debian fedora alpine centos android ios",
    "json xml yaml csv toml protobuf avro parquet html markdown pdf text binary excel ini",
    "kafka rabbitmq nats sqs pulsar activemq mqtt amqp",
    "aws azure gcp hetzner heroku vercel on-premises on-prem datacenter cloud",
    "http https ftp sftp ssh grpc graphql rest soap websocket tcp udp smtp imap",
    "mit apache gpl agpl bsd mpl proprietary lgpl",
    "tabs spaces", "camelcase snake_case kebab-case",
    "milliseconds seconds minutes hours days weeks months years microseconds",
    "hourly daily nightly weekly monthly quarterly yearly annually fortnightly biweekly",
    "hour day night week month quarter year minute second",
    "spring summer autumn winter",
    "north south east west northern southern eastern western",
    "morning afternoon evening night noon midnight",
    "car bus train tram bike bicycle ferry plane taxi foot subway metro scooter motorcycle boat",
    "teacher nurse doctor lawyer engineer baker plumber carpenter journalist architect accountant"
    " dentist pilot farmer librarian electrician chef cook painter translator biologist physicist"
    " chemist historian driver gardener musician designer programmer priest judge butcher tailor"
    " economist geologist philosopher photographer midwife vet pharmacist banker",
    "biology chemistry physics history mathematics maths law medicine economics philosophy geology"
    " literature linguistics psychology sociology engineering architecture theology geography",
    "violin viola cello piano guitar flute trumpet drums harp clarinet oboe saxophone accordion"
    " organ trombone bass",
    "cat dog rabbit hamster parrot horse goat sheep cow pig hen tortoise goldfish",
    "coffee tea juice milk beer wine water cocoa lemonade whisky",
    "breakfast lunch dinner supper",
    "father mother brother sister son daughter uncle aunt cousin grandfather grandmother nephew"
    " niece husband wife",
    "single married divorced widowed engaged separated",
    "attic cellar basement kitchen bathroom bedroom hall garage garden balcony roof loft hallway"
    " porch shed ground",
    "upstairs downstairs", "indoors outdoors", "left right", "first second third last fourth fifth",
    "cash card transfer invoice cheque paypal", "email phone letter post fax chat sms slack",
    "english french german italian spanish portuguese japanese dutch polish russian chinese latin"
    " finnish swedish danish korean arabic turkish greek norwegian czech hindi",
    "football tennis basketball handball volleyball hockey rugby cricket badminton chess swimming"
    " rowing boxing judo golf",
    "man woman boy girl male female",
    "man woman nobody", "exponential linear fixed constant random quadratic",
    "lru fifo lifo lfu", "bcrypt argon2 scrypt md5 sha1 sha256 pbkdf2",
    "utc cet gmt est local", "integer integers uuid uuids string strings float ulid bigint text",
    "git svn mercurial perforce", "gitlab github bitbucket jenkins buildkite circleci travis",
    "slack teams discord zoom signal whatsapp telegram matrix",
    "vegan vegetarian omnivore pescatarian",
    "rice pasta potatoes bread noodles couscous", "beef pork chicken lamb fish tofu",
    "flat house bungalow cabin villa studio farm", "rented owned leased borrowed bought",
    "monthly upfront", "public private internal confidential secret",
    "chrome firefox safari edge opera", "vim emacs vscode intellij pycharm nano",
    "react vue angular svelte", "docker podman kubernetes nomad swarm",
    "terraform ansible puppet chef pulumi", "nginx apache caddy traefik haproxy",
    "rsync tar zip gzip zstd lz4 brotli", "ssd hdd tape disk nvme s3",
)  # fmt: skip


def _table() -> dict[str, frozenset[int]]:
    table: dict[str, set[int]] = {}
    for number, group in enumerate(_KINDS):
        for word in group.split():
            table.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in table.items()}


_KIND_OF: Final = _table()
_NONE: Final[frozenset[Never]] = frozenset()


def exclude(left: str, right: str) -> bool:
    """Whether two stems are different members of one kind."""
    return left != right and bool(_KIND_OF.get(left, _NONE) & _KIND_OF.get(right, _NONE))


_PREFIXES: Final = ("un", "in", "im", "non", "non-", "dis", "il", "ir")
_OTHER_WORDS: Final = words(
    "import imports imported importer importing inform informs informed invest invests invested "
    "discount discounts discharge display displays dispatch inland intake inset input inputs"
)
"""Words whose beginning only looks like a prefix that denies."""
_SHORTEST: Final = 4
"""Stems below this many letters stand under too many prefixes by chance."""


def _denied(low: str, stemmed: str) -> bool:
    if len(stemmed) < _SHORTEST or low in _OTHER_WORDS:
        return False
    return low.startswith(tuple(prefix + stemmed for prefix in _PREFIXES)) or (
        low.endswith("less") and low.startswith(stemmed)
    )


def opposed(left: Token, right: Token) -> bool:
    """Whether two words are opposites, by the list or by a prefix or ending that denies."""
    listed = ANTONYMS.get(left.low) or ANTONYMS.get(left.stem) or _NONE
    return (
        right.low in listed
        or right.stem in listed
        or _denied(left.low, right.stem)
        or _denied(right.low, left.stem)
    )
