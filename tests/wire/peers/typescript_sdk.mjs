// Conversations of the official TypeScript SDK with servers, one after another.
//
// Reads a JSON object on each line of its input, with `config`, `environment` and `cwd`, and answers
// with one that has `status`, `out` (what the client saw, as JSON), `err` and `goes_on` (whether it
// takes further ones: not after one that failed, which may leave something open).
//
// A configuration has `modules` (the folder of the installed packages), `sdk` (1 or 2), `command` or
// `url`, `mode` (legacy, auto or a revision; SDK 2 only) and optionally `token`, `sampled` (what its
// model writes, one text a request), `answer` (to every elicitation), `answers` (to the first ones,
// in order) and `calls` (pairs of tool and arguments, made instead of the conversation with the
// fixtures; `resources/read` and `prompts/get` stand for a tool, and so does `end`, which ends the
// session behind the client's back). With `follow` it calls `more` for what still runs.

import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { inspect } from "node:util";

const uri = "test://watched-resource";
let config = {};
let report = {};
let notified = () => {};

function packages() {
  const require = createRequire(path.join(config.modules, "here.js"));
  if (config.sdk === 1) {
    const base = "@modelcontextprotocol/sdk";
    const types = require(`${base}/types.js`);
    return {
      Client: require(`${base}/client/index.js`).Client,
      Stdio: require(`${base}/client/stdio.js`).StdioClientTransport,
      Http: require(`${base}/client/streamableHttp.js`).StreamableHTTPClientTransport,
      name: {
        "elicitation/create": types.ElicitRequestSchema,
        "sampling/createMessage": types.CreateMessageRequestSchema,
        "roots/list": types.ListRootsRequestSchema,
        "notifications/message": types.LoggingMessageNotificationSchema,
        "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
      },
    };
  }
  const base = "@modelcontextprotocol/client";
  return {
    Client: require(base).Client,
    Stdio: require(`${base}/stdio`).StdioClientTransport,
    Http: require(base).StreamableHTTPClientTransport,
    name: {},
  };
}

// Keeps the HTTP status of what answers a call.
async function noting(url, init) {
  const response = await fetch(url, init);
  if (/"(tools\/call|resources\/read)"/.test(String(init?.body ?? ""))) {
    (report.statuses ??= []).push(response.status);
  }
  return response;
}

function open({ Client, Stdio, Http, name }) {
  const options = { capabilities: { elicitation: {}, sampling: {}, roots: {} } };
  if (config.sdk === 2) {
    const fixed = ["legacy", "auto"].includes(config.mode);
    options.versionNegotiation = { mode: fixed ? config.mode : { pin: config.mode } };
  }
  const client = new Client({ name: "typescript-peer", version: "1.0.0" }, options);
  const answer = (method, handler) => client.setRequestHandler(name[method] ?? method, handler);
  const hear = (method, handler) => client.setNotificationHandler(name[method] ?? method, handler);
  answer("elicitation/create", async (request) => {
    report.asked.push(request.params.message);
    const fields = Object.keys(request.params.requestedSchema.properties);
    const content = Object.fromEntries(fields.map((field) => [field, "Alice"]));
    return config.answers?.shift() ?? config.answer ?? { action: "accept", content };
  });
  answer("sampling/createMessage", async () => ({
    role: "assistant",
    content: { type: "text", text: config.sampled?.shift() ?? "Paris" },
    model: "none",
  }));
  answer("roots/list", async () => ({ roots: [{ uri: "file:///test/root", name: "Root" }] }));
  hear("notifications/message", (note) => void report.logs.push(note.params.level));
  hear("notifications/resources/updated", (note) => {
    report.updated.push(note.params.uri);
    notified();
  });
  const { faults } = report;
  client.onerror = (error) => faults.push(String(error));
  const [program, ...rest] = config.command ?? [];
  const headers = config.token ? { Authorization: `Bearer ${config.token}` } : {};
  const transport = config.command
    ? new Stdio({ command: program, args: rest, stderr: "ignore" })
    : new Http(new URL(config.url), { requestInit: { headers }, fetch: noting });
  return { client, transport };
}

const codeOf = (call) => call.then(() => null, (error) => error.code ?? String(error));
const textOf = (result) => result.content[0].text;

async function tools(client, modern) {
  const call = (name, given = {}, options = undefined, meta = undefined) => {
    const params = { name, arguments: given, ...(meta ? { _meta: meta } : {}) };
    return config.sdk === 1
      ? client.callTool(params, undefined, options)
      : client.callTool(params, options);
  };
  report.tools = (await client.listTools()).tools.map((tool) => tool.name);
  const added = await call("add", { a: 1, b: 2 });
  report.sum = [added.structuredContent ?? null, JSON.parse(textOf(added))];
  report.tool_error = (await call("test_error_handling")).isError;
  const onprogress = (note) => report.progress.push([note.progress, note.total, note.message]);
  await call("test_tool_with_progress", {}, { onprogress });
  if (!modern) await client.setLoggingLevel("alert");
  const level = modern ? { "io.modelcontextprotocol/logLevel": "alert" } : undefined;
  await call("test_logging_tool", {}, undefined, level);
  report.headed = textOf(await call("test_x_mcp_header", { region: "eu", priority: 3 }));
  report.elicited = textOf(await call("confirm_name"));
  report.sampled = textOf(await call("test_sampling", { prompt: "?" }));
  report.roots = textOf(await call("test_input_required_result_list_roots"));
  report.rounds = textOf(await call("test_input_required_result_multi_round"));
  const blocks = (await call("test_multiple_content_types")).content;
  report.kinds = blocks.map((block) => block.type);
  report.unknown_tool = await codeOf(call("no_such_tool"));
  return call;
}

// Ends the session as the server knows it, past the client.
async function end(session) {
  const headers = { Authorization: `Bearer ${config.token}`, "Mcp-Session-Id": session };
  return (await fetch(config.url, { method: "DELETE", headers })).status;
}

async function outcome(client, name, given, transport) {
  try {
    if (name === "end") return { status: await end(transport.sessionId) };
    if (name === "resources/read") {
      return { text: (await client.readResource({ uri: given.uri })).contents[0].text };
    }
    if (name === "prompts/get") {
      return { text: (await client.getPrompt({ name: given.name })).messages[0].content.text };
    }
    let result = await client.callTool({ name, arguments: given });
    while (config.follow && textOf(result).includes("still running")) {
      report.followed = (report.followed ?? 0) + 1;
      const { more } = JSON.parse(textOf(result));
      result = await client.callTool({ name: "more", arguments: { handle: more } });
    }
    return {
      text: textOf(result),
      structured: result.structuredContent ?? null,
      is_error: result.isError ?? false,
    };
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}

async function resources(client, call, modern) {
  report.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  const { resourceTemplates } = await client.listResourceTemplates();
  report.templates = resourceTemplates.map((template) => template.uriTemplate);
  report.read = (await client.readResource({ uri: "test://static-text" })).contents[0].text;
  report.blob = (await client.readResource({ uri: "test://static-binary" })).contents[0].mimeType;
  report.unknown_resource = await codeOf(client.readResource({ uri: "test://nothing" }));
  const changed = new Promise((resolve) => (notified = resolve));
  if (modern) {
    const heard = await client.listen({ resourceSubscriptions: [uri] });
    await call("trigger_resource_change");
    await changed;
    await heard.close();
  } else {
    await client.subscribeResource({ uri });
    await call("trigger_resource_change");
    await changed;
    await client.unsubscribeResource({ uri });
  }
}

async function prompts(client) {
  report.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  const given = { name: "test_prompt_with_arguments", arguments: { arg1: "x", arg2: "y" } };
  report.prompt = (await client.getPrompt(given)).messages[0].content.text;
  report.unknown_prompt = await codeOf(client.getPrompt({ name: "no_such_prompt" }));
  const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
  const completed = await client.complete({ ref, argument: { name: "arg1", value: "par" } });
  report.completion = completed.completion.values;
}

async function cancel(call) {
  const seen = async () => JSON.parse(textOf(await call("witness"))).cancelled;
  const before = await seen();
  const giveUp = new AbortController();
  const started = new Promise((resolve) => {
    const options = { signal: giveUp.signal, onprogress: resolve };
    call("wait", {}, options).catch(() => {});
  });
  await started;
  giveUp.abort();
  let count = 0;
  while (count < 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    count = (await seen()) - before;
  }
  return count;
}

async function talk() {
  const { client, transport } = open(packages());
  await client.connect(transport);
  const modern = config.sdk === 2 && client.getProtocolEra() === "modern";
  report.revision =
    config.sdk === 2 ? client.getNegotiatedProtocolVersion() : (transport.protocolVersion ?? null);
  report.server = client.getServerVersion()?.name ?? null;
  if (config.calls) {
    report.tools = (await client.listTools()).tools.map((tool) => tool.name);
    report.results = [];
    for (const [name, given] of config.calls) {
      report.results.push(await outcome(client, name, given, transport));
    }
    await client.close();
    return report;
  }
  const call = await tools(client, modern);
  await resources(client, call, modern);
  await prompts(client);
  if (!modern) {
    await client.ping();
    report.ping = true;
  }
  report.cancelled = await cancel(call);
  report.session = transport.sessionId ?? null;
  if (report.session !== null) await transport.terminateSession();
  await client.close();
  return report;
}

async function converse(request) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, request.environment);
  process.chdir(request.cwd);
  config = request.config;
  report = { logs: [], updated: [], progress: [], faults: [], asked: [] };
  notified = () => {};
  const late = setTimeout(() => {
    console.error("no end after 240 s", JSON.stringify(report));
    process.exit(1);
  }, 240_000);
  try {
    return { status: 0, out: JSON.stringify(await talk()), err: "", goes_on: true };
  } catch (error) {
    return { status: 1, out: "", err: inspect(error), goes_on: false };
  } finally {
    clearTimeout(late);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await converse(JSON.parse(line));
  await new Promise((written) => process.stdout.write(`${JSON.stringify(answer)}\n`, written));
  if (!answer.goes_on) break;
}
process.exit(0);
