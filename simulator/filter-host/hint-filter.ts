// The last step of the build: the filter's module gets hints by what its branches do with usual requests.

import { readFileSync, writeFileSync } from 'node:fs';
import { hintBranches } from './branch-hints.js';
import { Host } from './host.js';
import { serveUsual, usualConfig } from './usual-requests.js';

const file = process.argv[2]!;
const hinted = hintBranches(readFileSync(file), (module, probe) => {
  const host = new Host(new WebAssembly.Module(module), (bytes) => bytes.fill(7), { probe });
  serveUsual(host.startVm(usualConfig));
});
writeFileSync(file, hinted);
