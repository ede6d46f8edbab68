import { writeFileSync } from 'node:fs';
import { readArguments, refuseArguments } from '../arguments.js';
import { endure } from './endurance.js';
import { fuzzForms } from './forms.js';
import { fuzzHeaders } from './headers.js';
import { Random } from './random.js';
import { fuzzScanner } from './scanner.js';
import { fuzzSnapshots } from './snapshots.js';

const targets = {
  scanner: fuzzScanner,
  forms: fuzzForms,
  snapshots: fuzzSnapshots,
  headers: fuzzHeaders,
  endurance: endure,
} as const;

const OPTIONS = { inputs: 'N', seed: 'N', only: 'NAME' };

/** What `--json FILE` writes for each target. */
interface Figures {
  readonly inputs: number;
  readonly seed: number;
  /** Inputs that were JSON or forms, were installed, or were sent on; installs for endurance. */
  readonly accepted: number;
  readonly cpuSeconds: number;
}

function main(): void {
  const values = readArguments('fuzz', OPTIONS);
  const inputs = Number(values.inputs ?? (values.quick ? 1e5 : 1e7));
  const seed = Number(values.seed ?? Date.now() % 2 ** 31);
  const names = Object.keys(targets);
  if (!Number.isInteger(inputs) || inputs < 1)
    refuseArguments('fuzz', OPTIONS, '--inputs: give a whole number above 0');
  if (!Number.isInteger(seed)) refuseArguments('fuzz', OPTIONS, '--seed: give a whole number');
  if (values.only !== undefined && !names.includes(values.only))
    refuseArguments('fuzz', OPTIONS, `--only: there is no "${values.only}"; there are ${names.join(', ')}`);
  const figures: Record<string, Figures> = {};
  for (const [name, fuzz] of Object.entries(targets)) {
    if (values.only !== undefined && values.only !== name) continue;
    const before = process.cpuUsage();
    console.log(`${name}: ${inputs} inputs from seed ${seed} …`);
    const accepted = fuzz(inputs, new Random(seed));
    const { user, system } = process.cpuUsage(before);
    const cpuSeconds = Math.round((user + system) / 1e5) / 10;
    figures[name] = { inputs, seed, accepted, cpuSeconds };
    console.log(`${name}: no trap and no wrong answer; ${accepted} accepted; ${cpuSeconds} s of CPU`);
  }
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`);
}

main();
