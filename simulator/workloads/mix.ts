import type { Random } from '../random.js';
import { type Arrivals, type ConversationSource, measured } from './conversation-source.js';

/** Conversations of several sources, by their shares of the conversations. */
export function mix(
  parts: readonly (readonly [source: ConversationSource, share: number])[],
): ConversationSource {
  const total = parts.reduce((sum, [, share]) => sum + share, 0);
  return measured({
    conversation(id, startAt, random) {
      let rest = total * random.unit();
      const [source] =
        parts.find(([, share]) => {
          rest -= share;
          return rest < 0;
        }) ?? parts[0]!;
      return source.conversation(id, startAt, random);
    },
  });
}

/** Several streams of arrivals as one. */
export function merge(streams: readonly Arrivals[]): Arrivals {
  const heads = streams.map((stream) => stream.next());
  return {
    next() {
      let first = 0;
      for (let index = 1; index < heads.length; index++) if (heads[index]! < heads[first]!) first = index;
      const at = heads[first]!;
      heads[first] = streams[first]!.next();
      return at;
    },
  };
}

/** Independent gaps with this mean; `cv` is their standard deviation over their mean (1: a Poisson stream). */
export function renewals(meanGap: number, cv: number, random: Random): Arrivals {
  const shape = 1 / (cv * cv);
  // As if the stream had begun long before.
  let at = -meanGap * random.unit() * (1 + cv * cv);
  return {
    next() {
      do at += (meanGap * random.gamma(shape)) / shape;
      while (at < 0);
      return at;
    },
  };
}
