/**
 * The shapes of what the server answers, as types. Nothing here runs.
 *
 * @typedef {{ role: "viewer" | "approver" | "admin", sources: string[] | null }} Role
 * @typedef {{ name: string, color: number, group?: string }} SourceLook
 * @typedef {SourceLook & { engine: string, dialect: string }} SourceInfo
 * @typedef {{
 *   operator: { name: string, roles: Role[] }, page: string, key?: string, build: string, instance: string,
 *   by: "link" | "passphrase", confirmed: boolean, idle_s: number, ends_at: number, now: number,
 *   sources: SourceInfo[], demo: boolean, invited?: boolean, four_eyes: "off" | "own" | "always" }} Session
 *
 * @typedef {string | null} Cell
 * @typedef {(Cell[] | null)[]} Rows
 * @typedef {{ columns: string[], rows: Rows, reason: string }} NewState
 * @typedef {{
 *   affected: number | null, columns: string[], before: Rows, after: Rows, reason: string,
 *   withheld: string[], masked: string[], what: string, added: number, removed: number, requests: string[],
 *   state: NewState | null }} DryRun
 * @typedef {{
 *   state: "running" | "done" | "failed" | "unknown", rows: number | null, at: number,
 *   call_id: string, change_id: string | null, undone: boolean, message: string }} Run
 * @typedef {{
 *   allow: boolean, deny: boolean, minutes: number, undo: boolean, revoke?: boolean,
 *   why_not: string, passphrase: boolean }} May
 * @typedef {{
 *   id: string, digest: string, state: "pending" | "allowed" | "denied" | "used" | "expired",
 *   asked_at: number, askers: number, caller: { name: string, id: string, client: string, in_console: boolean },
 *   source: SourceLook, surface: string, tool: string, sentence: string,
 *   agent_reason: string, effect: string, why: string, reason: string,
 *   statement: [string, string][], params: string | null, withheld: boolean, tables: string[],
 *   database: string, schema: string, unqualified: boolean, outside_transaction: boolean,
 *   dry_run: DryRun | null, dry_run_hidden?: string,
 *   undo: { possible: boolean | null, reason: string, triggers: string[] }, limit?: string,
 *   irreversible: boolean, waiting: { until: number | null }, expires_at: number | null,
 *   ended_at?: number | null, decided_at: number | null, decided_by: string, decision_reason: string,
 *   grant: { until: number, uses: number, most_uses: number } | null, run: Run | null,
 *   refused?: { at: number, message: string, count: number } | null,
 *   may: May }} Card
 * @typedef {{ name: string, client: string, last_at: number }} Agent
 * @typedef {{
 *   state: "off" | "ok" | "failing" | "stopped", message: string, since: number | null,
 *   sent_at: number | null, waiting: number, dropped: number, digest_minutes: number }} Webhook
 * @typedef {{ source: boolean, token: boolean, client: boolean }} Steps what is set up
 * @typedef {{ agents: Agent[], calls: Line[], steps: Steps, whole?: boolean } & Partial<GatesOfPage>} Recent
 * @typedef {Recent & { pending: Card[], recent: Card[], webhook?: Webhook, seq: number }} Inbox
 * @typedef {{ key: string, before: Cell[] | null, after: Cell[] | null, now: Cell[] | null }} ChangedRow
 * @typedef {{
 *   table: string, columns: string[], masked: string[], count: number, rows: ChangedRow[]
 *   }} ChangedTable
 * @typedef {{
 *   id: string, source: string, at: number, state: string, tables: ChangedTable[], count: number,
 *   conflicts: number, conflict_rows: { table: string, key: string, problem: string }[],
 *   triggers: string[], possible: boolean, reason: string }} Change
 *
 * @typedef {{
 *   n: number, time: number, call_id: string, session: string | number, actor: string, actor_name: string,
 *   client: string, address: string, surface: string, tool: string, source: string,
 *   request: string, statement: string, effect: string, verdict: string, rule: string,
 *   outcome: string, code: string, message: string, rows: number | null, ms: number | null,
 *   approval: string, event: string, gate?: string }} Line
 * @typedef {[string, number][]} Facet
 * @typedef {"source" | "actor" | "outcome" | "effect" | "surface"} FacetName
 * @typedef {{
 *   lines: Line[], next: string | null,
 *   counts: { total: number, more: boolean, own: { left_out: number, more: boolean } },
 *   facets: Record<FacetName, Facet>, newest?: Record<string, number>, read?: number } & Partial<GatesOfPage>} ActivityPage
 * @typedef {{
 *   gates: Record<string, string>,
 *   missing: { gate: string, name: string, why: "silent" | "failed" | "gone" }[] }} GatesOfPage
 * @typedef {{
 *   session: string | number, actor_name: string, client: string, started_at: number, ended_at: number,
 *   calls: number, denied: number, writes: number, call_id: string, gate?: string }} AgentSession
 * @typedef {Line & { proof: Proof }} ProvedLine
 * @typedef {{ session: AgentSession, lines: ProvedLine[], next: number | null }} Story
 * @typedef {{
 *   state: string, text: string, running: boolean, at?: number, after_checkpoint?: number | null,
 *   gate?: string, name?: string }} RecordProof
 * @typedef {RecordProof & { others?: RecordProof[], missing?: GatesOfPage["missing"] }} LogProof
 * @typedef {{ state: string, text: string, segment?: string, seq?: number, hash?: string }} Proof
 * @typedef {{
 *   id: string, state: "prepared" | "done" | "undone", rows: number, may_undo: boolean }} KeptChange
 * @typedef {{
 *   line: Line, fields: Record<string, unknown>, proof: Proof, approval: Card | null,
 *   change?: KeptChange | null }} LineRecord
 *
 * @typedef {{
 *   id: string, actor_name: string, client: string, address: string, surface: string, tool: string,
 *   request: string, source: SourceLook | null, statement: string,
 *   withheld: boolean, effect: string,
 *   state: "preparing" | "waiting" | "queued" | "running" | "cancelling", since: number,
 *   rows: number | null, own: boolean, may_cancel: boolean }} RunningCall
 * @typedef {{
 *   span: "hour" | "day", since: number, step_s: number, calls: number[], asked: number[],
 *   denied: number[], failed: number[], cancelled: number[], p50: (number | null)[], p99: (number | null)[],
 *   total_p50: number | null, total_p99: number | null, shared: boolean, waiting: number[],
 *   complete: boolean, missing: string[] }} Figures
 * @typedef {{
 *   name: string, color: number, group?: string, status: string, error: string, running: number,
 *   connections: number | null, last_active_at: number | null }} SourceCondition
 * @typedef {{
 *   id: string, place: string, processes: number, seen_at: number,
 *   state: "here" | "answers" | "partly" | "silent" | "unknown" | "gone" }} Gate
 * @typedef {{
 *   calls: RunningCall[], more: number, figures: Figures, sources: SourceCondition[], gates: Gate[],
 *   record: { problems: Record<string, string>, checkpoint_at: number | null, free_bytes: number | null },
 *   webhook: Webhook, seq: number, now: number }} NowPage
 */
export {};
