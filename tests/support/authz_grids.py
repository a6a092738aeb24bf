"""What is expected of every actor under every setting of a source, written out.

Nothing here is computed from the code under test. A row is a setting (`authz_engines.SETTINGS`), a
column an actor (`authz_server.ACTORS`), a word an outcome:

ok        it runs                            source    not on the caller's allowlist
blocked   closed to this kind of caller      scope     the caller's scope does not cover it
ro        the source or tool only reads      denied    never runs, whoever asks
phrase    needs the tool that confirms       unfit     that tool is not for this
ask       a person must approve first        ident     the database does not know the caller
masked    would show what is hidden          gone      no such tab or result for this caller
"""

from __future__ import annotations

Grid = dict[str, dict[str, str]]


def grid(text: str) -> Grid:
    """`grid[setting][actor]` is the outcome."""
    header, *lines = [line.split() for line in text.strip().splitlines()]
    return {name: dict(zip(header, words, strict=True)) for name, *words in lines}


# Names of tables and columns: no one is asked, but the database must know who reads them.
NAMES = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      ok
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      ok
administered ok      ok      ok      ok      ok      source  ok      ok      ok      ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ok      ok      ok      ok      ok      source  ok      ok      ok      ok
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
everything   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      ok
masked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# What the server itself keeps of a source: no database is read.
STATE = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      ok
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      ok
administered ok      ok      ok      ok      ok      source  ok      ok      ok      ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ok      ok      ok      ok      ok      source  ok      ok      ok      ok
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
everything   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      ok
masked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unmapped     ok      ok      ok      ok      ok      source  ok      ok      ok      ok
""")

# Rows.
READS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      ok
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      ok
administered ok      ok      ok      ok      ok      source  ok      ok      ok      ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     ok      ask
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     ask
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      ok
masked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# What a server is busy with: no table that a list could name.
DASHBOARD = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      masked
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      masked
administered ok      ok      ok      ok      ok      source  ok      ok      ok      masked
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     ok      masked
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     masked
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      masked
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      masked
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      masked
masked       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# What the sessions of a server do: texts of statements could tell what is hidden.
STATISTICS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      masked
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      masked
administered ok      ok      ok      ok      ok      source  ok      ok      ok      masked
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     ok      masked
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     masked
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      masked
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      masked
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      masked
masked       masked  masked  masked  masked  masked  source  masked  masked  masked  masked
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# A change of some rows.
WRITES = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    scope   ok      ok      ok      ok      source  scope   ok      scope   ok
administered scope   ok      ok      ok      ok      source  scope   ok      scope   ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ask     ask     ask     ask     source  scope   ask     scope   ask
writes       scope   ask     ask     ask     ask     source  scope   ask     scope   ask
everything   scope   ask     ask     ask     ask     source  scope   ask     scope   ask
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
guarded      scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
inbox        scope   ask     ask     ask     ask     source  scope   ask     scope   ask
masked       scope   masked  masked  masked  masked  source  scope   masked  scope   masked
unmapped     scope   ident   ident   ident   ident   source  scope   ident   scope   ident
""")

# What administers the database, by a tool that does not confirm.
ADMINISTERS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    scope   denied  denied  denied  denied  source  scope   denied  scope   denied
administered scope   scope   ask     scope   scope   source  scope   scope   scope   scope
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   denied  denied  denied  denied  source  scope   denied  scope   denied
writes       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
everything   scope   denied  denied  denied  denied  source  scope   denied  scope   denied
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
trusts       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
guarded      scope   denied  denied  denied  denied  source  scope   denied  scope   denied
unattended   scope   denied  denied  denied  denied  source  scope   denied  scope   denied
inbox        scope   denied  denied  denied  denied  source  scope   denied  scope   denied
masked       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
unmapped     scope   denied  denied  denied  denied  source  scope   denied  scope   denied
""")

# UPDATE and DELETE without WHERE, by a tool that does not confirm.
UNQUALIFIED = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
administered scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
writes       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
everything   scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
guarded      scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
unattended   scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
inbox        scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
masked       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
unmapped     scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
""")

# DROP, by a tool that does not confirm.
DESTRUCTIVE = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
administered scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
writes       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
everything   scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
trusts       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
guarded      scope   scope   phrase  scope   scope   source  scope   scope   scope   scope
unattended   scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
inbox        scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
masked       scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
unmapped     scope   phrase  phrase  phrase  phrase  source  scope   phrase  scope   phrase
""")

# Session and server settings, several statements, what cannot be read.
NEVER = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     denied  denied  denied  denied  denied  source  denied  denied  denied  denied
readWrite    denied  denied  denied  denied  denied  source  denied  denied  denied  denied
administered denied  denied  denied  denied  denied  source  denied  denied  denied  denied
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked denied  blocked
asks         denied  denied  denied  denied  denied  source  denied  denied  denied  denied
writes       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
everything   denied  denied  denied  denied  denied  source  denied  denied  denied  denied
locked       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
denies       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
trusts       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
guarded      denied  denied  denied  denied  denied  source  denied  denied  denied  denied
unattended   denied  denied  denied  denied  denied  source  denied  denied  denied  denied
inbox        denied  denied  denied  denied  denied  source  denied  denied  denied  denied
masked       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
unmapped     denied  denied  denied  denied  denied  source  denied  denied  denied  denied
""")

# Any change, by a tool that is for reading.
READS_ONLY = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    ro      ro      ro      ro      ro      source  ro      ro      ro      ro
administered ro      ro      ro      ro      ro      source  ro      ro      ro      ro
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ro      blocked
asks         ro      ro      ro      ro      ro      source  ro      ro      ro      ro
writes       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
everything   ro      ro      ro      ro      ro      source  ro      ro      ro      ro
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
trusts       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
guarded      ro      ro      ro      ro      ro      source  ro      ro      ro      ro
unattended   ro      ro      ro      ro      ro      source  ro      ro      ro      ro
inbox        ro      ro      ro      ro      ro      source  ro      ro      ro      ro
masked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
unmapped     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
""")

# A tool for who may write, about what the server keeps.
WRITER_STATE = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   ok      ok      ok      ok      source  scope   ok      scope   ok
administered scope   ok      ok      ok      ok      source  scope   ok      scope   ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ok      ok      ok      ok      source  scope   ok      scope   ok
writes       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
everything   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
locked       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
denies       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
guarded      scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
inbox        scope   ok      ok      ok      ok      source  scope   ok      scope   ok
masked       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unmapped     scope   ok      ok      ok      ok      source  scope   ok      scope   ok
""")

# A tool for who may write, which reads names.
WRITER_NAMES = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   ok      ok      ok      ok      source  scope   ok      scope   ok
administered scope   ok      ok      ok      ok      source  scope   ok      scope   ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ok      ok      ok      ok      source  scope   ok      scope   ok
writes       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
everything   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
locked       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
denies       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
guarded      scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
inbox        scope   ok      ok      ok      ok      source  scope   ok      scope   ok
masked       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unmapped     scope   ident   ident   ident   ident   source  scope   ident   scope   ident
""")

# A tool for who may write, which changes rows.
INSERTS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   ok      ok      ok      ok      source  scope   ok      scope   ok
administered scope   ok      ok      ok      ok      source  scope   ok      scope   ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ask     ask     ask     ask     source  scope   ask     scope   ask
writes       scope   ask     ask     ask     ask     source  scope   ask     scope   ask
everything   scope   ask     ask     ask     ask     source  scope   ask     scope   ask
locked       scope   ro      ro      ro      ro      source  scope   ro      scope   ro
denies       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
guarded      scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
inbox        scope   ask     ask     ask     ask     source  scope   ask     scope   ask
masked       scope   ok      ok      ok      ok      source  scope   ok      scope   ok
unmapped     scope   ident   ident   ident   ident   source  scope   ident   scope   ident
""")

# The tool that confirms, on what needs no confirmation.
HARMLESS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
administered scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
writes       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
everything   scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
locked       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
denies       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
trusts       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
guarded      scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
unattended   scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
inbox        scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
masked       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
unmapped     scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
""")

# The tool that confirms, on UPDATE and DELETE without WHERE.
CONFIRMED_UNQUALIFIED = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   ask     ask     ask     ask     source  scope   ask     scope   ask
administered scope   ask     ask     ask     ask     source  scope   ask     scope   ask
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ask     ask     ask     ask     source  scope   ask     scope   ask
writes       scope   ask     ask     ask     ask     source  scope   ask     scope   ask
everything   scope   ask     ask     ask     ask     source  scope   ask     scope   ask
locked       scope   ro      ro      ro      ro      source  scope   ro      scope   ro
denies       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
trusts       scope   unfit   unfit   unfit   unfit   source  scope   unfit   scope   unfit
guarded      scope   ask     ask     ask     ask     source  scope   ask     scope   ask
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   ok
inbox        scope   ask     ask     ask     ask     source  scope   ask     scope   ask
masked       scope   masked  masked  masked  masked  source  scope   masked  scope   masked
unmapped     scope   ident   ident   ident   ident   source  scope   ident   scope   ident
""")

# The tool that confirms, on changes of which only the rows tell whether they are about all of them:
# it takes those, unless the source says that they never run.
CONFIRMED_CHANGES: Grid = {**CONFIRMED_UNQUALIFIED, "denies": HARMLESS["denies"]}

# The tool that confirms, on DROP.
CONFIRMED = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   ask     ask     ask     ask     source  scope   ask     scope   masked
administered scope   ask     ask     ask     ask     source  scope   ask     scope   masked
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ask     ask     ask     ask     source  scope   ask     scope   masked
writes       scope   ask     ask     ask     ask     source  scope   ask     scope   masked
everything   scope   ask     ask     ask     ask     source  scope   ask     scope   masked
locked       scope   ro      ro      ro      ro      source  scope   ro      scope   ro
denies       scope   ask     ask     ask     ask     source  scope   ask     scope   masked
trusts       scope   ask     ask     ask     ask     source  scope   ask     scope   masked
guarded      scope   scope   ask     scope   scope   source  scope   scope   scope   scope
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   masked
inbox        scope   ask     ask     ask     ask     source  scope   ask     scope   masked
masked       scope   masked  masked  masked  masked  source  scope   masked  scope   masked
unmapped     scope   ident   ident   ident   ident   source  scope   ident   scope   ident
""")

# The tool that confirms, on what never runs.
CONFIRMED_NEVER = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     scope   ro      ro      ro      ro      source  scope   ro      scope   ro
readWrite    scope   denied  denied  denied  denied  source  scope   denied  scope   denied
administered scope   denied  denied  denied  denied  source  scope   denied  scope   denied
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   denied  denied  denied  denied  source  scope   denied  scope   denied
writes       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
everything   scope   denied  denied  denied  denied  source  scope   denied  scope   denied
locked       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
denies       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
trusts       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
guarded      scope   denied  denied  denied  denied  source  scope   denied  scope   denied
unattended   scope   denied  denied  denied  denied  source  scope   denied  scope   denied
inbox        scope   denied  denied  denied  denied  source  scope   denied  scope   denied
masked       scope   denied  denied  denied  denied  source  scope   denied  scope   denied
unmapped     scope   denied  denied  denied  denied  source  scope   denied  scope   denied
""")

# The plan of a change: nothing is changed, so who may read may see it.
EXPLAINS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      denied
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      denied
administered ok      ok      ok      ok      ok      source  ok      ok      ok      denied
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     ok      denied
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      denied
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     denied
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      denied
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      denied
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      denied
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      denied
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      denied
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      denied
masked       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# The plan of what the database has no plan of.
WITHOUT_PLAN = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     denied  denied  denied  denied  denied  source  denied  denied  denied  denied
readWrite    denied  denied  denied  denied  denied  source  denied  denied  denied  denied
administered denied  denied  denied  denied  denied  source  denied  denied  denied  denied
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked denied  blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     denied  denied
writes       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     denied
locked       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
denies       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
trusts       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
guarded      denied  denied  denied  denied  denied  source  denied  denied  denied  denied
unattended   denied  denied  denied  denied  denied  source  denied  denied  denied  denied
inbox        denied  denied  denied  denied  denied  source  denied  denied  denied  denied
masked       denied  denied  denied  denied  denied  source  denied  denied  denied  denied
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# The rest of a result: who could not get the first rows has none.
MORE = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      ok
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      ok
administered ok      ok      ok      ok      ok      source  ok      ok      ok      ok
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         gone    gone    gone    gone    gone    source  gone    gone    ok      gone
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
everything   gone    gone    gone    gone    gone    source  gone    gone    gone    gone
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      ok
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      ok
masked       ok      ok      ok      ok      ok      source  ok      ok      ok      ok
unmapped     ident   ident   ident   ident   ident   source  ident   ident   ident   ident
""")

# A tab, by its id: to a caller who may not see its source it does not exist.
TABS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
readWrite    ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
administered ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
blocked      gone    gone    gone    gone    gone    gone    gone    gone    gone    gone
never        gone    gone    gone    gone    gone    gone    gone    gone    ok      gone
asks         ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
writes       ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
everything   ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
locked       ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
denies       ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
trusts       ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
guarded      ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
unattended   ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
inbox        ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
masked       ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
unmapped     ok      ok      ok      ok      ok      gone    ok      ok      ok      ok
""")

# An engine whose language hides nothing: who has a list of tables, or to whom something is hidden,
# gets no answer at all. It has no roles to map callers to.

# Rows, operations that read, and plans.
OPERATION_READS = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ok      ok      ok      ok      ok      source  ok      ok      ok      masked
readWrite    ok      ok      ok      ok      ok      source  ok      ok      ok      masked
administered ok      ok      ok      ok      ok      source  ok      ok      ok      masked
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked ok      blocked
asks         ask     ask     ask     ask     ask     source  ask     ask     ok      masked
writes       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
everything   ask     ask     ask     ask     ask     source  ask     ask     ask     masked
locked       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
denies       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
trusts       ok      ok      ok      ok      ok      source  ok      ok      ok      masked
guarded      ok      ok      ok      ok      ok      source  ok      ok      ok      masked
unattended   ok      ok      ok      ok      ok      source  ok      ok      ok      masked
inbox        ok      ok      ok      ok      ok      source  ok      ok      ok      masked
masked       masked  masked  masked  masked  masked  source  masked  masked  masked  masked
""")

# Statements and operations that add a row.
OPERATION_WRITES = grid("""
             reader  writer  owner   tagged  oauth   foreign anon    stdio   person  listed
readOnly     ro      ro      ro      ro      ro      source  ro      ro      ro      ro
readWrite    scope   ok      ok      ok      ok      source  scope   ok      scope   masked
administered scope   ok      ok      ok      ok      source  scope   ok      scope   masked
blocked      blocked blocked blocked blocked blocked source  blocked blocked blocked blocked
never        blocked blocked blocked blocked blocked source  blocked blocked scope   blocked
asks         scope   ask     ask     ask     ask     source  scope   ask     scope   masked
writes       scope   ask     ask     ask     ask     source  scope   ask     scope   masked
everything   scope   ask     ask     ask     ask     source  scope   ask     scope   masked
locked       ro      ro      ro      ro      ro      source  ro      ro      ro      ro
denies       scope   ok      ok      ok      ok      source  scope   ok      scope   masked
trusts       scope   ok      ok      ok      ok      source  scope   ok      scope   masked
guarded      scope   ok      ok      ok      ok      source  scope   ok      scope   masked
unattended   scope   ok      ok      ok      ok      source  scope   ok      scope   masked
inbox        scope   ask     ask     ask     ask     source  scope   ask     scope   masked
masked       scope   masked  masked  masked  masked  source  scope   masked  scope   masked
""")
