import { mean, type Random, type Range } from '../random.js';

/** What conversations are like. A conversation's prompts grow: each turn sends all earlier turns again. */
export interface ConversationShape {
  readonly turns: Range;
  /** From one request of a conversation to its next, whether or not the answer has come: the load is open loop. */
  readonly turnGapSeconds: Range;
  readonly firstMessageTokens: Range;
  readonly laterMessageTokens: Range;
  readonly outputTokens: Range;
  /** 0..1, share of requests whose answer is streamed. */
  readonly streamedShare: number;
}

/** Short chats: half of the requests streamed, three of four returning, seven of ten prompt tokens sent before. */
export const exampleConversations: ConversationShape = {
  turns: { min: 2, max: 6 },
  turnGapSeconds: { min: 2, max: 3 },
  firstMessageTokens: { min: 160, max: 240 },
  laterMessageTokens: { min: 40, max: 80 },
  outputTokens: { min: 32, max: 40 },
  streamedShare: 0.5,
};

/** Mean sizes of their requests where every conversation stays with its engine. */
export const exampleSizes = { promptTokens: 374, uncachedPromptTokens: 103, outputTokens: 36 };

export interface Turn {
  readonly conversationId: string;
  /** Affinity key that clients send, where it is not the conversation's id. */
  readonly key?: string;
  /** 0 for the first turn. */
  readonly index: number;
  readonly atSeconds: number;
  /** Tokens of the user's new message. */
  readonly messageTokens: number;
  readonly outputTokens: number;
  readonly streamed: boolean;
  readonly last: boolean;
}

/** No conversation is longer: the rate of turns is stationary this long after the first conversation. */
export function longestLifeSeconds(shape: ConversationShape): number {
  return (shape.turns.max - 1) * shape.turnGapSeconds.max;
}

/**
 * The requests of one place from time 0 to the end, by time. Conversations begin as a Poisson stream with
 * `requestsPerSecond` over the mean number of turns; after the longest life the rate is as asked.
 */
export function* conversationTurns(
  shape: ConversationShape,
  requestsPerSecond: number,
  random: Random,
  name: string,
): Generator<Turn, never> {
  const meanGap = mean(shape.turns) / requestsPerSecond;
  const pending: Turn[] = [];
  let startAt = random.exponential(meanGap);
  for (let number = 0; ; ) {
    while (pending.length === 0 || startAt < pending.at(-1)!.atSeconds) {
      pending.push(...conversation(shape, `${name}-${number++}`, startAt, random));
      pending.sort((a, b) => b.atSeconds - a.atSeconds);
      startAt += random.exponential(meanGap);
    }
    yield pending.pop()!;
  }
}

/** The turns from a time on, which becomes 0; conversations that are under way by then begin with their next turn. */
export function* fromLater(turns: Iterable<Turn>, seconds: number): Generator<Turn> {
  const missed = new Map<string, number>();
  for (const turn of turns) {
    const before = missed.get(turn.conversationId) ?? 0;
    const isMissed = turn.atSeconds < seconds;
    if (turn.last) missed.delete(turn.conversationId);
    else if (isMissed) missed.set(turn.conversationId, before + 1);
    if (!isMissed) yield { ...turn, index: turn.index - before, atSeconds: turn.atSeconds - seconds };
  }
}

/** The turns of one conversation. */
export function conversation(shape: ConversationShape, id: string, startAt: number, random: Random): Turn[] {
  const turns: Turn[] = [];
  const count = random.integer(shape.turns);
  let atSeconds = startAt;
  for (let index = 0; index < count; index++) {
    turns.push({
      conversationId: id,
      index,
      atSeconds,
      messageTokens: random.integer(index === 0 ? shape.firstMessageTokens : shape.laterMessageTokens),
      outputTokens: random.integer(shape.outputTokens),
      streamed: random.unit() < shape.streamedShare,
      last: index === count - 1,
    });
    atSeconds += random.between(shape.turnGapSeconds);
  }
  return turns;
}
