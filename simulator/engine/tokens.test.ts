import fc from 'fast-check';
import { expect, it } from 'vitest';
import { answerWords, blockIds, promptTokens } from './tokens.js';

const messages = fc.array(
  fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), content: fc.string() }),
  { minLength: 1, maxLength: 6 },
);

it('makes a prompt and its answer exactly what the next prompt of the conversation begins with', () => {
  fc.assert(
    fc.property(messages, fc.integer({ min: 1, max: 20 }), fc.string(), (history, outputTokens, question) => {
      const prompt = promptTokens(history);
      const answer = answerWords(prompt, outputTokens);
      const before = blockIds(prompt, answer, 4);
      const next = promptTokens([
        ...history,
        { role: 'assistant', content: answer.join('') },
        { role: 'user', content: question },
      ]);
      expect(blockIds(next, [], 4).slice(0, before.length)).toEqual(before);
      expect(before.length).toBe(Math.floor((prompt.length + outputTokens) / 4));
    }),
  );
});

it('gives prompts that differ early no block in common', () => {
  const ids = (first: string) =>
    blockIds(promptTokens([{ role: 'user', content: first + 'the same text'.repeat(10) }]), [], 4);
  const other = new Set(ids('b'));
  expect(ids('a').filter((id) => other.has(id))).toEqual([]);
});
