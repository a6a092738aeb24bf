// Uses each source through node-postgres and prints what it found as JSON.
// Arguments: the folder of packages, port, token, then a source and a query with $1 for each.
import { createRequire } from "node:module";

const [modules, port, password, ...words] = process.argv.slice(2);
const { Client } = createRequire(`${modules}/`)("pg");
const found = {};
for (let at = 0; at < words.length; at += 2) {
  const [source, text] = words.slice(at, at + 2);
  const client = new Client({ host: "127.0.0.1", port: Number(port), user: "writer", password, database: source });
  await client.connect();
  const simple = await client.query(text.replace("$1", "'1'"));
  const extended = await client.query(text, ["1"]);
  const named = [];
  for (const id of ["1", "2"]) {
    named.push(await client.query({ name: "by id", text, values: [id], rowMode: "array" }));
  }
  const refused = await client.query("SELECT nope FROM nothing").catch((error) => error.code);
  found[source] = {
    simple: simple.rows,
    extended: extended.rows,
    named: named.map((result) => result.rows),
    types: extended.fields.map((field) => field.dataTypeID),
    refused,
  };
  await client.end();
}
console.log(JSON.stringify(found));
