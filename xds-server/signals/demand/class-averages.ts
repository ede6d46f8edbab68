import type { PoolUsage } from '../../../wire/usage-report.js';
import { rowKey } from '../../fleet/row-key.js';
import { measuredConfidence } from '../measured-confidence.js';
import { refill } from '../saved.js';

/** Requests are counted with an exponential memory. */
const MEMORY_MS = 600_000;
/** So many requests tell as much as more do. */
const ENOUGH = 200;

/** Something that the requests of one class have on average. */
export interface Average {
  readonly value: number;
  /** What tells it: bodies of requests, or the usage in answers. */
  readonly source: 'bodies' | 'answers';
  /** Requests that it is of, old ones fading. */
  readonly requests: number;
  readonly ageSeconds: number;
  /** 0..1 */
  readonly confidence: number;
}

/** How the requests of one (frontend, pool, priority) are; null where nothing tells. */
export interface ClassAverages {
  /** Tokens of prompts and outputs of known length. */
  readonly promptTokens: Average | null;
  readonly outputTokens: Average | null;
  /** 0..1, share of the bodies that hold an earlier answer. */
  readonly followUpShare: Average | null;
  /** 0..1, share of the prompt tokens that were in a cache, wherever conversations went. */
  readonly hitShare: Average | null;
}

const PARTS = [
  'promptTokens',
  'promptCount',
  'outputTokens',
  'outputCount',
  'followUps',
  'bodiesRead',
  'cachedTokens',
  'cachedOfTokens',
] as const;
type Part = (typeof PARTS)[number];

interface Sums {
  readonly of: Record<Part, number>;
  atMs: number;
  /** When each was last counted. */
  readonly countedMs: Partial<Record<Part, number>>;
}

/** How the requests of each class are, by usage reports of about ten minutes. To look at: plans go by `RequestSizes`. */
export class ClassAveragesWatch {
  readonly #sums = new Map<string, Sums>();

  add(frontendId: string, poolId: string, usage: PoolUsage, nowMs: number): void {
    const key = keyOf(frontendId, poolId, usage.priority);
    const sums = this.#sums.get(key) ?? {
      of: Object.fromEntries(PARTS.map((part) => [part, 0])) as Sums['of'],
      atMs: nowMs,
      countedMs: {},
    };
    this.#sums.set(key, sums);
    const keep = Math.exp(-Math.max(0, nowMs - sums.atMs) / MEMORY_MS);
    sums.atMs = Math.max(sums.atMs, nowMs);
    for (const part of PARTS) {
      sums.of[part] = keep * sums.of[part] + usage[part];
      if (usage[part] > 0) sums.countedMs[part] = nowMs;
    }
  }

  view(frontendId: string, poolId: string, priority: number, nowMs: number): ClassAverages {
    const sums = this.#sums.get(keyOf(frontendId, poolId, priority));
    const average = (part: Part, whole: Part, source: Average['source'], perRequest = 1): Average | null => {
      const countedMs = sums?.countedMs[whole];
      if (sums === undefined || countedMs === undefined || sums.of[whole] === 0) return null;
      const requests = sums.of[whole] / perRequest;
      return {
        value: sums.of[part] / sums.of[whole],
        source,
        requests,
        ageSeconds: Math.max(0, nowMs - countedMs) / 1_000,
        confidence: Math.min(1, requests / ENOUGH) * measuredConfidence(countedMs, nowMs),
      };
    };
    const promptTokens = average('promptTokens', 'promptCount', 'answers');
    return {
      promptTokens,
      outputTokens: average('outputTokens', 'outputCount', 'answers'),
      followUpShare: average('followUps', 'bodiesRead', 'bodies'),
      hitShare: average('cachedTokens', 'cachedOfTokens', 'answers', Math.max(1, promptTokens?.value ?? 1)),
    };
  }

  /** Forgets all others. */
  keep(rows: readonly { readonly frontendId: string; readonly poolId: string }[]): void {
    const wanted = new Set(rows.map(rowKey));
    for (const key of this.#sums.keys()) {
      if (!wanted.has(key.slice(0, key.lastIndexOf(' ')))) this.#sums.delete(key);
    }
  }

  save() {
    return [...this.#sums].map(([key, sums]) => [key, structuredClone(sums)] as const);
  }

  restore(saved: SavedClassAverages): void {
    refill(this.#sums, structuredClone(saved));
  }
}

type SavedClassAverages = ReturnType<ClassAveragesWatch['save']>;

function keyOf(frontendId: string, poolId: string, priority: number): string {
  return `${frontendId} ${poolId} ${priority}`;
}
