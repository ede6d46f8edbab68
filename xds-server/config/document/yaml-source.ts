import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { ConfigError, type ConfigProblem, formatPath, type Path } from '../problem.js';

/** How the parser says that a bracket or a quote is missing; it says so where it notices, which may be many lines later. */
const UNCLOSED = /end with a [\]}]$|^Missing closing/;

/** Whether a node ends with a bracket or a quote. */
function isClosable(node: Node): boolean {
  if (isCollection(node)) return node.flow === true;
  return node instanceof Scalar && (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE');
}

/** Keys are names: YAML takes some for numbers, and 1.10 would become 1.1. */
function nameOf(key: unknown): string {
  return key instanceof Scalar ? (key.source ?? String(key)) : String(key);
}

/** A parsed YAML file that knows where each value was written. */
export class YamlSource {
  readonly file: string;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  /** By their keys, of mappings that were asked about. */
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();

  /** @throws {ConfigError} with all syntax errors */
  constructor(text: string, file: string) {
    this.file = file;
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      logLevel: 'error',
      // No value of a configuration is of a kind that only a tag can name, such as bytes or dates.
      resolveKnownTags: false,
      // It would compare each key with all before it.
      uniqueKeys: false,
    });
    const syntaxErrors = this.#syntaxErrors();
    // What is misread may seem to have a key twice.
    const repeatedKeys = syntaxErrors.length > 0 ? [] : this.#repeatedKeys();
    const problems = [...syntaxErrors, ...repeatedKeys, ...this.#wrongAliases()];
    if (problems.length > 0) throw new ConfigError('WARDROP_CONFIG_UNREADABLE', problems);
    this.#takeKeysAsWritten();
  }

  #takeKeysAsWritten(): void {
    visit(this.#document, {
      Pair: (_, pair) => {
        const meant = this.#resolve(pair.key);
        if (!(meant instanceof Scalar)) return;
        // What an alias stands for may be a value as well, which stays what it is.
        const key = isAlias(pair.key)
          ? Object.assign(new Scalar(undefined), { range: pair.key.range })
          : meant;
        key.value = nameOf(meant);
        pair.key = key;
      },
    });
  }

  /**
   * The document as plain values.
   *
   * @throws {ConfigError} when its aliases stand for more than any configuration holds
   */
  toValue(): unknown {
    try {
      return this.#document.toJS();
    } catch (error) {
      if (!(error instanceof ReferenceError)) throw error;
      throw new ConfigError('WARDROP_CONFIG_UNREADABLE', [
        this.problem([], 'aliases of aliases multiply beyond measure', { hint: 'write the values out' }),
      ]);
    }
  }

  #syntaxErrors(): ConfigProblem[] {
    // Its warnings are of tags and directives that it leaves out, and with them what they were to do.
    const errors = [...this.#document.errors, ...this.#document.warnings];
    const tabs = errors.filter(({ code }) => code === 'TAB_AS_INDENT');
    // What follows a tab is misread in many ways, all of which end with it.
    if (tabs.length > 0) errors.splice(0, errors.length, ...tabs);
    // Where something is not closed, all around it is not either: the first error there says it.
    const first = new Map<number, YAMLError>();
    for (const error of errors) if (!first.has(error.pos[0])) first.set(error.pos[0], error);
    return [...first.values()].map((error) => this.#described(error));
  }

  #described({ code, message, pos: [offset] }: YAMLError): ConfigProblem {
    if (code === 'MULTIPLE_DOCS') return this.#problemAt(offset, 'a second document starts here; keep one');
    // What the parser says when its own stack is full.
    if (code === 'RESOURCE_EXHAUSTION') return this.#problemAt(offset, 'values are nested too deeply');
    if (code === 'TAB_AS_INDENT') {
      return { ...this.#problemAt(offset, 'a tab indents this line'), hint: 'use spaces' };
    }
    const problem = this.#problemAt(offset, message);
    const opening = UNCLOSED.test(message) ? this.#openingOf(offset) : undefined;
    if (opening === undefined) return problem;
    const { line, column } = this.#position(opening);
    return { ...problem, hint: `it begins in line ${line}, column ${column}` };
  }

  /** Keys that their mapping has before, too. */
  #repeatedKeys(): ConfigProblem[] {
    const problems: ConfigProblem[] = [];
    visit(this.#document, {
      Map: (_, { items }) => {
        const first = new Map<string, Node>();
        for (const { key } of items) {
          const meant = this.#resolve(key);
          if (!(meant instanceof Scalar)) continue;
          const name = nameOf(meant);
          const before = first.get(name);
          if (before === undefined) first.set(name, key as Node);
          else problems.push(this.#repeatedKey(name, key as Node, before));
        }
      },
    });
    return problems;
  }

  #repeatedKey(name: string, key: Node, first: Node): ConfigProblem {
    const { line } = this.#position(first.range?.[0] ?? 0);
    const message = `key ${JSON.stringify(name)} is already in line ${line}`;
    return this.#problemAt(key.range?.[0] ?? 0, message);
  }

  /** Where the innermost of what the parser gave up at `offset` begins. */
  #openingOf(offset: number): number | undefined {
    let opening: number | undefined;
    visit(this.#document, {
      Node: (_, node) => {
        if (isClosable(node) && node.range?.[1] === offset) opening = node.range[0];
      },
    });
    return opening;
  }

  /** The parser finds them only when values are made, and then stops at the first. */
  #wrongAliases(): ConfigProblem[] {
    const problems: ConfigProblem[] = [];
    visit(this.#document, {
      Alias: (_, alias, around) => {
        const { source, range } = alias;
        const meant = alias.resolve(this.#document);
        if (meant !== undefined && !around.includes(meant)) return;
        const message =
          meant === undefined
            ? `there is no anchor &${source} before the alias *${source}`
            : `the alias *${source} stands in what it stands for`;
        problems.push(this.#problemAt(range?.[0] ?? 0, message));
      },
    });
    return problems;
  }

  #problemAt(offset: number, message: string): ConfigProblem {
    return { file: this.file, ...this.#position(offset), path: '', message };
  }

  /** Whether the file has a value at `path`, valid or not. */
  has(path: Path): boolean {
    return this.#document.hasIn(path);
  }

  /** The scalar at `path` as it is written, which is not always how its value is printed; undefined when there is none. */
  written(path: Path): string | undefined {
    const node = this.#resolve(this.#document.getIn(path, true));
    return node instanceof Scalar ? node.source : undefined;
  }

  /**
   * A problem with the value at `path`, or with the nearest written value around it. `at: 'key'` points to the key
   * instead of the value.
   */
  problem(
    path: Path,
    message: string,
    options: { at?: 'key' | 'value'; hint?: string | undefined } = {},
  ): ConfigProblem {
    return {
      file: this.file,
      ...this.#position(this.#offset(path, options.at ?? 'value')),
      path: formatPath(path),
      message,
      ...(options.hint === undefined ? {} : { hint: options.hint }),
    };
  }

  #position(offset: number): { line: number; column: number } {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  #offset(path: Path, at: 'key' | 'value'): number {
    let node = this.#resolve(this.#document.contents);
    let offset = node?.range?.[0] ?? 0;
    for (const [depth, step] of path.entries()) {
      const last = depth === path.length - 1;
      if (isSeq(node) && typeof step === 'number') {
        const item = node.items[step];
        if (!isNode(item)) return offset;
        offset = item.range?.[0] ?? offset;
        node = this.#resolve(item);
      } else if (isMap(node)) {
        const pair = this.#pairOf(node, String(step));
        if (pair === undefined) return offset;
        const key = isNode(pair.key) ? pair.key.range?.[0] : undefined;
        const value = isNode(pair.value) ? pair.value.range?.[0] : undefined;
        offset = (last && at === 'key' ? key : (value ?? key)) ?? offset;
        node = isNode(pair.value) ? this.#resolve(pair.value) : null;
      } else return offset;
    }
    return offset;
  }

  /** A mapping of thousands of keys may have a problem with each. */
  #pairOf(map: YAMLMap, key: string): Pair | undefined {
    let pairs = this.#pairs.get(map);
    if (pairs === undefined) {
      pairs = new Map(map.items.map((pair) => [String(pair.key), pair]));
      this.#pairs.set(map, pairs);
    }
    return pairs.get(key);
  }

  #resolve(node: unknown): Node | null {
    if (isAlias(node)) return node.resolve(this.#document) ?? null;
    return isNode(node) ? node : null;
  }
}
