import { expect, it } from 'vitest';
import { Random } from '../random.js';
import { mooncake } from './mooncake.js';

it('gives conversations whose turns come in order and together have the means that an operator would state', () => {
  const source = mooncake();
  const random = new Random(1);
  const conversations = Array.from({ length: 4000 }, (_, index) =>
    source.conversation(`c${index}`, 10, random),
  );
  const turns = conversations.flat();
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  for (const conversation of conversations) {
    const times = conversation.map(({ atSeconds }) => atSeconds);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(conversation.map(({ index }) => index)).toEqual(conversation.map((_, index) => index));
    expect(conversation.map(({ last }) => last).indexOf(true)).toBe(conversation.length - 1);
  }
  const { expected } = source;
  expect(Math.abs(turns.length / conversations.length / source.meanTurns - 1)).toBeLessThan(0.1);
  expect(
    Math.abs(mean(turns.map((turn) => turn.messageTokens)) / expected.uncachedPromptTokens - 1),
  ).toBeLessThan(0.1);
  expect(Math.abs(mean(turns.map((turn) => turn.outputTokens)) / expected.outputTokens - 1)).toBeLessThan(
    0.1,
  );
  expect(expected.promptTokens).toBeGreaterThan(expected.uncachedPromptTokens);
});
