import { configSchema } from './schema/schema.js';

/** The part of JSON Schema that `schema.ts` uses. */
interface Schema {
  readonly type: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly nullable?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | false;
}

const introduction = `# Configuration

<!-- Written from the schema in xds-server/config/schema/schema.ts by its test; do not edit. -->

\`wardrop serve -c FILE\` and \`wardrop validate -c FILE\` read one YAML file. Unknown keys, wrong types and
contradictions are errors; all of them are reported at once, with line and column. A running server reloads the file
when it changes and on SIGHUP; a file with errors changes nothing. \`wardrop schema\` prints the JSON Schema for editors.
`;

/** The reference page of the configuration file, in Markdown. */
export function configReference(): string {
  const sections = Object.entries(configSchema.properties as unknown as Record<string, Schema>).map(
    ([key, schema]) => section(key, schema, (configSchema.required as readonly string[]).includes(key)),
  );
  return [introduction, ...sections].join('\n');
}

function section(key: string, schema: Schema, required: boolean): string {
  const lines = [`## \`${key}\``, '', `${schema.description ?? ''}${required ? ' Required.' : ''}`, ''];
  const rows = [...keysOf('', schema)];
  if (rows.length > 0) lines.push(...table([['key', 'type', 'default', 'meaning'], ...rows]), '');
  return lines.join('\n');
}

/** A Markdown table with aligned columns; the first row is the heading. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const [heading, ...body] = rows.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`,
  );
  return [heading!, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body];
}

/** Table rows for every key below a schema, depth first. */
function* keysOf(prefix: string, schema: Schema): Generator<readonly string[]> {
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    const path = `${prefix}${key}`;
    yield row(path, child, schema.required?.includes(key) === true);
    yield* keysOf(childPrefix(path, child), child);
  }
  const { items, additionalProperties } = schema;
  if (items !== undefined) yield* keysOf(prefix, items);
  if (typeof additionalProperties === 'object') yield* keysOf(`${prefix}*.`, additionalProperties);
}

function childPrefix(path: string, schema: Schema): string {
  return schema.type === 'array' ? `${path}[].` : `${path}.`;
}

function row(path: string, schema: Schema, required: boolean): readonly string[] {
  const fallback = required ? 'required' : showDefault(schema.default);
  return [`\`${path}\``, typeOf(schema), fallback, schema.description ?? ''];
}

function showDefault(value: unknown): string {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return value === undefined || isEmpty ? '' : `\`${String(value)}\``;
}

function typeOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (typeof schema.type !== 'string') return 'text or list of text';
  if (schema.type === 'array')
    return `list of ${schema.items === undefined ? 'values' : typeOf(schema.items)}`;
  if (schema.type === 'object') {
    const { additionalProperties } = schema;
    return typeof additionalProperties === 'object'
      ? `mapping to ${typeOf(additionalProperties)}`
      : 'mapping';
  }
  const range = rangeOf(schema);
  const name = schema.type === 'string' ? 'text' : schema.type;
  return `${name}${range === '' ? '' : ` ${range}`}${schema.nullable ? ' or `null`' : ''}`;
}

function rangeOf(schema: Schema): string {
  const low = schema.exclusiveMinimum === undefined ? schema.minimum : `>${schema.exclusiveMinimum}`;
  const high = schema.exclusiveMaximum === undefined ? schema.maximum : `<${schema.exclusiveMaximum}`;
  return low === undefined && high === undefined ? '' : `${low ?? ''}…${high ?? ''}`;
}
