/** A metric, narrowed to series that carry these labels. */
export interface Selector {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
}

/** Reads `name` or `name{label="value",…}`; undefined when it is neither. */
export function parseSelector(text: string): Selector | undefined {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^{}]*)\})?$/.exec(text);
  if (match === null) return undefined;
  const labels = new Map<string, string>();
  for (const part of (match[2] ?? '').split(',').filter((item) => item.trim() !== '')) {
    const label = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*)"\s*$/.exec(part);
    if (label === null) return undefined;
    labels.set(label[1]!, label[2]!);
  }
  return { name: match[1]!, labels };
}
