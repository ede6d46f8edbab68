import type { Turn } from '../load/conversations.js';
import type { Conversation } from '../policies/policy.js';
import { Random } from '../random.js';
import type { Scenario, ScenarioDemand } from '../scenario.js';

export interface ConversationState extends Conversation {
  /** Weights of its frontend at its last turn. */
  lastWeights: readonly number[] | undefined;
}

/** Conversations that go on, by what frontends tell them by. */
export class Conversations {
  readonly #seed: number;
  /** By class, as a key may be used by conversations of several. */
  readonly #open: readonly Map<string, ConversationState>[];

  constructor({ classes }: Pick<Scenario, 'classes'>, seed: number) {
    this.#seed = seed;
    this.#open = classes.map(() => new Map());
  }

  /** The conversation of a turn. One without a key of its own ends with its last turn. */
  of({ classShares }: ScenarioDemand, turn: Turn): ConversationState {
    const key = turn.key ?? turn.conversationId;
    const isOver = turn.last && turn.key === undefined;
    const hash = new Random(this.#seed, key).bits();
    const requestClass = classOf(classShares, hash);
    const open = this.#open[requestClass]!;
    const known = open.get(key);
    if (isOver) open.delete(key);
    if (known) return known;
    const conversation: ConversationState = {
      id: key,
      hash,
      requestClass,
      lastEngine: -1,
      lastTokens: 0,
      lastWeights: undefined,
    };
    if (!isOver) open.set(key, conversation);
    return conversation;
  }
}

function classOf(shares: readonly number[], hash: number): number {
  // Independent of what policies make of the hash.
  let rest = new Random(hash, 'class').unit();
  const chosen = shares.findIndex((share) => {
    rest -= share;
    return rest < 0;
  });
  return Math.max(0, chosen);
}
