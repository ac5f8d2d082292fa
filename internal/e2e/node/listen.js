// Listens with pg, the driver for Node.js, through a pooler whose address is in the environment.
'use strict';

const assert = require('node:assert');
const pg = require('pg');

async function main() {
  const client = new pg.Client();
  const other = new pg.Client();
  await client.connect();
  await other.connect();
  const heard = [];
  let wake = () => {};
  client.on('notification', (n) => {
    heard.push(`${n.channel} ${n.payload}`);
    wake();
  });
  const hears = async (n) => {
    while (heard.length < n) {
      await new Promise((resolve) => { wake = resolve; });
    }
  };
  await client.query('LISTEN node');
  await other.query('NOTIFY node, $$one$$');
  await hears(1);
  await other.query('SELECT pg_notify($1, $2)', ['node', 'two']);
  await hears(2);
  await client.query('SELECT pg_notify($1, $2)', ['node', 'own']);
  await hears(3);
  await client.query('UNLISTEN node');
  await other.query('NOTIFY node');
  await client.query('LISTEN last');
  await other.query('NOTIFY last');
  await hears(4);
  assert.deepStrictEqual(heard, ['node one', 'node two', 'node own', 'last ']);
  await client.end();
  await other.end();
  console.log('all is well');
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
