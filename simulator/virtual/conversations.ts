import type { Turn } from '../load/conversations.js';
import type { Conversation } from '../policies/policy.js';
import { Random } from '../random.js';
import type { Scenario } from '../scenario.js';

export interface ConversationState extends Conversation {
  /** Weights of its frontend at its last turn. */
  lastWeights: readonly number[] | undefined;
}

/** Conversations that go on, by what frontends tell them by. */
export class Conversations {
  readonly #scenario: Scenario;
  readonly #seed: number;
  readonly #open = new Map<string, ConversationState>();

  constructor(scenario: Scenario, seed: number) {
    this.#scenario = scenario;
    this.#seed = seed;
  }

  /** The conversation of a turn at a frontend. One without a key of its own ends with its last turn. */
  of(frontend: number, turn: Turn): ConversationState {
    const key = turn.key ?? turn.conversationId;
    const isOver = turn.last && turn.key === undefined;
    const known = this.#open.get(key);
    if (isOver) this.#open.delete(key);
    if (known) return known;
    const hash = new Random(this.#seed, key).bits();
    const requestClass = this.#classOf(frontend, hash);
    const conversation: ConversationState = {
      id: key,
      hash,
      requestClass,
      eligible: this.#scenario.classes?.[requestClass]?.eligible,
      lastEngine: -1,
      lastTokens: 0,
      lastWeights: undefined,
    };
    if (!isOver) this.#open.set(key, conversation);
    return conversation;
  }

  #classOf(frontend: number, hash: number): number {
    const shares = this.#scenario.frontends[frontend]!.classShares;
    if (shares === undefined) return 0;
    // Independent of what policies make of the hash.
    let rest = new Random(hash, 'class').unit();
    const chosen = shares.findIndex((share) => {
      rest -= share;
      return rest < 0;
    });
    return Math.max(0, chosen);
  }
}
