import { parseArgs } from 'node:util';

/** What every benchmark can be told. */
export interface BenchArguments {
  /** Less of everything, for a first look. */
  readonly quick: boolean;
  /** Where to write the figures. */
  readonly json: string | undefined;
}

/** Further options, and what their values are called, such as `{ seed: 'N' }`. */
type Own<K extends string> = Readonly<Record<K, string>>;

/** The command line of the benchmark `name`. Ends the process after `--help`, and where an option is wrong. */
export function readArguments<K extends string = never>(
  name: string,
  own: Own<K> = {} as Own<K>,
): BenchArguments & Readonly<Partial<Record<K, string>>> {
  const owns = Object.keys(own).map((option) => [option, { type: 'string' } as const]);
  const options = {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    ...Object.fromEntries(owns),
  } as const;
  try {
    const { values }: { values: Readonly<Record<string, unknown>> } = parseArgs({ options });
    if (!values.help) return values as ReturnType<typeof readArguments<K>>;
  } catch (error) {
    return refuseArguments(name, own, (error as Error).message);
  }
  console.log(usage(name, own));
  process.exit(0);
}

/** Ends the process with status 2. */
export function refuseArguments(name: string, own: Own<string>, why: string): never {
  console.error(`${why}\n${usage(name, own)}`);
  process.exit(2);
}

function usage(name: string, own: Own<string>): string {
  const further = Object.entries(own).map(([option, value]) => ` [--${option} ${value}]`);
  return `usage: npm run bench -- ${name} [--quick]${further.join('')} [--json FILE]`;
}
