import { parseArgs } from 'node:util';

export interface BenchArguments {
  /** Less of everything, for a first look. */
  readonly quick: boolean;
  /** Where to write the figures. */
  readonly json: string | undefined;
}

/** The arguments of `npm run bench -- NAME`; ends the process with the usage when they are none. */
export function readArguments(name: string): BenchArguments {
  try {
    const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'string' } } });
    return { quick: values.quick ?? false, json: values.json };
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: npm run bench -- ${name} [--quick] [--json FILE]`);
    process.exit(2);
  }
}
