// What frameworks for agents of JavaScript make of a server's tools and of one refused call, as JSON
// on stdout: `node frameworks.mjs CONFIG`, with the same CONFIG and report as frameworks.py.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const { framework, url, call, modules } = JSON.parse(process.argv[2]);
const find = createRequire(`${modules}/`);
const load = (name) => import(find.resolve(name));

async function vercel() {
  const { createMCPClient } = await load('@ai-sdk/mcp');
  const { asSchema, generateText, isStepCount } = await load('ai');
  const { MockLanguageModelV4 } = await load('ai/test');
  const client = await createMCPClient({ transport: { type: 'http', url } });
  try {
    const tools = await client.tools();
    const forms = {};
    for (const [name, tool] of Object.entries(tools)) {
      forms[name] = await asSchema(tool.inputSchema).jsonSchema;
    }
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const read = [];
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        read.push(prompt);
        const asked = { type: 'tool-call', toolCallId: '1', toolName: call[0], input: JSON.stringify(call[1]) };
        const content = read.length === 1 ? [asked] : [{ type: 'text', text: 'done' }];
        const reason = read.length === 1 ? 'tool-calls' : 'stop';
        return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
      },
    });
    const stopWhen = isStepCount(3);
    await generateText({ model, tools, prompt: 'go', stopWhen });
    const shown = read.length > 1 ? JSON.stringify(read[1].filter(({ role }) => role === 'tool')) : '';
    return { forms: { vercel: forms }, shown };
  } finally {
    await client.close();
  }
}

async function mastra() {
  const { MCPClient } = await load('@mastra/mcp');
  const client = new MCPClient({ servers: { it: { url: new URL(url) } } });
  try {
    const tools = await client.listTools();
    const forms = {};
    for (const [name, tool] of Object.entries(tools)) {
      const schema = tool.inputSchema;
      const standard = schema['~standard'];
      forms[name.replace(/^it_/, '')] = standard?.jsonSchema
        ? standard.jsonSchema.input({ target: 'draft-07' })
        : schema.jsonSchema ?? schema;
    }
    // An agent of Mastra gives its model the message of what a tool throws.
    const shown = await tools[`it_${call[0]}`].execute(call[1], {}).catch((error) => error.message);
    return { forms: { mastra: forms }, shown: JSON.stringify(shown) };
  } finally {
    await client.disconnect();
  }
}

/** mcp-remote, which gives clients on stdio a server on HTTP. */
async function remote() {
  const words = [find.resolve('mcp-remote/dist/proxy.js'), url, '--transport', 'http-only'];
  const proxy = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface({ input: proxy.stdout })[Symbol.asyncIterator]();
  const send = (message) => proxy.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = async (id, method, params) => {
    send({ id, method, params });
    for (;;) {
      const { value } = await lines.next();
      const message = JSON.parse(value);
      if (message.id === id) return message;
    }
  };
  try {
    const clientInfo = { name: 'mcp', version: '0.1.0' };
    await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    send({ method: 'notifications/initialized' });
    const { result } = await ask(2, 'tools/list', {});
    const forms = Object.fromEntries(result.tools.map(({ name, inputSchema }) => [name, inputSchema]));
    const answer = await ask(3, 'tools/call', { name: call[0], arguments: call[1] });
    if (answer.error) return { forms: { stdio: forms }, raised: answer.error.message };
    return { forms: { stdio: forms }, shown: JSON.stringify(answer.result) };
  } finally {
    proxy.kill();
  }
}

let report;
try {
  report = await { vercel, mastra, 'mcp-remote': remote }[framework]();
} catch (error) {
  report = { raised: `${error.name}: ${error.message}` };
}
process.stdout.write(JSON.stringify(report), () => process.exit(0));
