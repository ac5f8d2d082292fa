// Has pg, the driver for Node.js, read what the console of a pooler shows, in both
// protocols. The commands are arguments.
'use strict';

const assert = require('node:assert');
const pg = require('pg');

async function main() {
  const client = new pg.Client({ user: 'admin', password: process.env.PGEBB_ADMIN_PASSWORD });
  await client.connect();
  for (const command of process.argv.slice(2)) {
    const simple = await client.query(command);
    const extended = await client.query({ text: command, values: [], queryMode: 'extended' });
    assert.ok(simple.fields.length > 0, command);
    assert.deepStrictEqual(simple.fields.map((f) => f.name), extended.fields.map((f) => f.name));
  }
  await client.end();
  console.log('all is well');
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
