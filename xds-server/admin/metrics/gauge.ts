import { Gauge, type Registry } from 'prom-client';

export type Registers = Registry[];

/** A gauge whose samples are read anew for every page. */
export function gauge<L extends string>(
  registers: Registers,
  name: string,
  help: string,
  labelNames: readonly L[],
  read: () => Iterable<readonly [Readonly<Record<L, string>>, number]>,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}
