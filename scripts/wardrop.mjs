#!/usr/bin/env node
// What npm links as `wardrop`, once for each folder: here before the first build, and to be run after every other one.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const program = new URL('../dist/xds-server/cli/main.js', import.meta.url);
if (existsSync(fileURLToPath(program))) {
  await import(program.href);
} else {
  console.error('wardrop is not built yet: npm run build');
  process.exitCode = 2;
}
