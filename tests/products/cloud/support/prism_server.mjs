// Prism, which answers as an OpenAPI document says: one process, one document after the other.
//
// `prism_server.mjs MODULES` reads {"document": path, "checksLogin": boolean} from stdin, one a line,
// and prints a line for each: {"url": ...} once it is served on loopback, or {"error": ...}. The
// server of the document before ends then. With the end of stdin everything ends.

import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(path.join(process.argv[2], "here.js"));
const { createLogger } = require("@stoplight/prism-core");
const { getHttpOperationsFromSpec } = require("@stoplight/prism-http");
const { createServer } = require("@stoplight/prism-http-server");

const fixed = { isProxy: false, errors: false, mock: { dynamic: false } };
const checks = { validateRequest: true, validateResponse: true };
const logger = createLogger("prism", { level: "silent" });
let server;

async function serve({ document, checksLogin }) {
  await server?.close();
  server = undefined;
  const config = { ...fixed, ...checks, checkSecurity: checksLogin };
  const operations = await getHttpOperationsFromSpec(document);
  const made = createServer(operations, { cors: false, config, components: { logger } });
  const url = await made.listen(0, "127.0.0.1");
  server = made;
  return { url };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const answer = await serve(JSON.parse(line)).catch((error) => ({ error: String(error?.message ?? error) }));
  console.log(JSON.stringify(answer));
}
await server?.close();
process.exit(0);
