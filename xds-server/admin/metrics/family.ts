/** Metrics of one name, read anew for every page, as Prometheus' text format has them. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  /** Samples, each with its line break: fleets have hundreds of thousands, which are made one after the other. */
  lines(): Iterable<string>;
}

/** No two samples have the same labels. */
export function gauge<L extends string>(
  families: Family[],
  name: string,
  help: string,
  labelNames: readonly L[],
  read: () => Iterable<readonly [Readonly<Record<L, string>>, number]>,
): void {
  families.push({
    ...{ name, help, type: 'gauge' },
    *lines() {
      let isThere = labelNames.length > 0;
      for (const [labels, value] of read()) {
        isThere = true;
        yield line(name, labelText(labels), value);
      }
      if (!isThere) yield line(name, '', 0);
    },
  });
}

/** The part of a page that tells of these. */
export function* familiesText(families: readonly Family[]): Generator<string> {
  for (const family of families) {
    yield `\n# HELP ${family.name} ${escaped(family.help)}\n# TYPE ${family.name} ${family.type}\n`;
    yield* family.lines();
  }
}

/** `labels` as `labelText` makes them. */
export function line(name: string, labels: string, value: number): string {
  const of = labels === '' ? '' : `{${labels}}`;
  return `${name}${of} ${Number.isFinite(value) ? value : specialText(value)}\n`;
}

export function labelText(labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in labels) {
    text += `${text === '' ? '' : ','}${name}="${escaped(labels[name]!).replaceAll('"', '\\"')}"`;
  }
  return text;
}

function specialText(value: number): string {
  if (Number.isNaN(value)) return 'Nan';
  return value < 0 ? '-Inf' : '+Inf';
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
