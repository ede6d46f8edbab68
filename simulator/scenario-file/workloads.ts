import { conversation, exampleConversations, exampleSizes } from '../load/conversations.js';
import type { Range } from '../random.js';
import { azure } from '../workloads/azure.js';
import { type ConversationSource, measured, shaped } from '../workloads/conversation-source.js';
import { withHotKeys } from '../workloads/hot-keys.js';
import { mix } from '../workloads/mix.js';
import { MOONCAKE_SCALE, mooncake } from '../workloads/mooncake.js';
import { withServegenClients } from '../workloads/servegen.js';
import type { Problems } from './problems.js';
import type { WorkloadEntry } from './schema.js';

const AZURE_SCALE = 2;

/** Agents that read a little more at every step: contexts that grow to thousands of tokens. */
const growing: WorkloadEntry['conversations'] = {
  turns: [4, 10],
  turnGapSeconds: [2, 5],
  firstMessageTokens: [600, 1200],
  laterMessageTokens: [150, 450],
  outputTokens: [20, 100],
  streamedShare: 1,
};

/** Workloads that are always there, each made when it is asked for. */
const standardWorkloads: Readonly<Record<string, () => ConversationSource>> = {
  chat: () => shaped(exampleConversations, exampleSizes),
  'chat-streamed': () => shaped({ ...exampleConversations, streamedShare: 1 }, exampleSizes),
  'growing-contexts': () => fromShape(growing),
  'mooncake-conversations': () => mooncake('mooncake-conversations'),
  'mooncake-synthetic': () => mooncake('mooncake-synthetic'),
  'azure-conversation': () => azure('azure-conversation', { scale: AZURE_SCALE, replay: false }),
  'azure-code': () => azure('azure-code', { scale: AZURE_SCALE, replay: true }),
};

/** Makes workloads by name, each once. */
export class Workloads {
  readonly #entries: Readonly<Record<string, WorkloadEntry>>;
  readonly #problems: Problems;
  readonly #made = new Map<string, ConversationSource | undefined>();

  constructor(entries: Readonly<Record<string, WorkloadEntry>>, problems: Problems) {
    this.#entries = entries;
    this.#problems = problems;
  }

  get names(): readonly string[] {
    return [...Object.keys(this.#entries), ...Object.keys(standardWorkloads)];
  }

  /** Undefined when there is none of this name, or it is wrong. */
  get(name: string): ConversationSource | undefined {
    if (!this.#made.has(name)) {
      // A workload that mixes itself finds nothing.
      this.#made.set(name, undefined);
      this.#made.set(name, this.#make(name));
    }
    return this.#made.get(name);
  }

  #make(name: string): ConversationSource | undefined {
    const entry = this.#entries[name];
    if (entry === undefined) return standardWorkloads[name]?.();
    const path = ['workloads', name];
    const given = [entry.conversations, entry.trace, entry.mix].filter((part) => part !== undefined);
    if (given.length !== 1) {
      this.#problems.add(path, 'must have exactly one of conversations, trace and mix');
      return undefined;
    }
    const source = this.#source(entry, path);
    if (source === undefined) return undefined;
    const arriving = entry.arrivals === 'servegen-clients' ? withServegenClients(source) : source;
    return entry.hotKeys === undefined ? arriving : withHotKeys(arriving, entry.hotKeys);
  }

  #source(entry: WorkloadEntry, path: readonly (string | number)[]): ConversationSource | undefined {
    const { conversations, trace, arrivals, tokenScale } = entry;
    if (arrivals === 'replay' && !trace?.startsWith('azure')) {
      this.#problems.add(
        [...path, 'arrivals'],
        'replay needs an azure trace: the others have no times of arrival',
      );
      return undefined;
    }
    if (trace === 'azure-conversation' || trace === 'azure-code')
      return azure(trace, { scale: tokenScale ?? AZURE_SCALE, replay: arrivals === 'replay' });
    if (trace !== undefined) return mooncake(trace, tokenScale ?? MOONCAKE_SCALE);
    if (conversations !== undefined) {
      const bad = Object.entries(conversations).filter(
        ([, value]) => typeof value === 'object' && !isRange(value as readonly number[]),
      );
      for (const [key] of bad) this.#problems.add([...path, 'conversations', key], 'must be [least, most]');
      return bad.length > 0 ? undefined : fromShape(conversations);
    }
    const parts = Object.entries(entry.mix!).map(([name, share]) => {
      const source = this.get(name);
      const at = [...path, 'mix', name];
      if (!this.names.includes(name)) this.#problems.unknown(at, 'workload', name, this.names);
      else if (source === undefined) this.#problems.add(at, 'is wrong itself, or has this one in it');
      return [source, share] as const;
    });
    if (parts.some(([source]) => source === undefined)) return undefined;
    if (!parts.some(([, share]) => share > 0)) {
      this.#problems.add([...path, 'mix'], 'at least one share must be above 0');
      return undefined;
    }
    return mix(parts as [ConversationSource, number][]);
  }
}

function fromShape(entry: NonNullable<WorkloadEntry['conversations']>): ConversationSource {
  const shape = {
    turns: rangeOf(entry.turns),
    turnGapSeconds: rangeOf(entry.turnGapSeconds),
    firstMessageTokens: rangeOf(entry.firstMessageTokens),
    laterMessageTokens: rangeOf(entry.laterMessageTokens),
    outputTokens: rangeOf(entry.outputTokens),
    streamedShare: entry.streamedShare,
  };
  return measured({ conversation: (id, startAt, random) => conversation(shape, id, startAt, random) });
}

function isRange(values: readonly number[]): boolean {
  return values.length === 2 && values[0]! <= values[1]!;
}

function rangeOf([min, max]: readonly number[]): Range {
  return { min: min!, max: max! };
}
