import fc from 'fast-check';
import { numbers, texts } from './body-scanner.js';

const names = [
  ...Object.keys(texts),
  ...Object.keys(numbers),
  ...[
    'stream',
    'messages',
    'input',
    'prompt',
    'tools',
    'metadata',
    'id',
    'role',
    'type',
    'content',
    'output',
    'x',
    'models',
    '',
  ],
];
const shortText = fc.oneof(
  fc.constantFrom(
    'm',
    'assistant',
    'user',
    'image_url',
    'reasoning',
    'input_audio',
    'file',
    'text',
    '"',
    '\\',
    '\n',
    'é',
    '€',
    '🙂',
    '\ud800',
    '\udc00',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

/** JSON text of a string, its characters spelled in any of the ways there are. */
function spelled(text: string, choices: readonly number[]): string {
  let at = 0;
  const units = Array.from({ length: text.length }, (_, index) => {
    const code = text.charCodeAt(index);
    const choice = choices[at++ % choices.length]!;
    const hex = `\\u${code.toString(16).padStart(4, '0')}`;
    const alone = code >= 0xd800 && code <= 0xdfff;
    if (choice === 0 || code < 0x20 || alone)
      return choice === 1 ? hex.toUpperCase().replace('\\U', '\\u') : hex;
    if (text[index] === '"' || text[index] === '\\') return `\\${text[index]}`;
    if (text[index] === '/' && choice === 1) return '\\/';
    return text[index];
  });
  return `"${units.join('')}"`;
}

/** How each character is spelled. */
const choices = fc.array(fc.nat(5), { minLength: 1, maxLength: 5 });
const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r ');
/** Any JSON text, with keys that the scanner looks for in any place. */
export const { json } = fc.letrec<{ json: string; value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(shortText, choices).map(([text, how]) => spelled(text, how)),
    fc.constantFrom(
      'true',
      'false',
      'null',
      '0',
      '-0',
      '1',
      '17',
      '-3',
      '4096',
      '1.5',
      '1e3',
      '9007199254740991',
    ),
    tie('object'),
    fc
      .array(
        fc.tuple(space, tie('value'), space).map((parts) => parts.join('')),
        { maxLength: 3 },
      )
      .map((items) => `[${items.join(',')}]`),
  ),
  object: fc
    .array(fc.tuple(space, fc.constantFrom(...names), choices, space, tie('value'), space), { maxLength: 5 })
    .map(
      (entries) =>
        `{${entries.map(([a, key, how, b, value, c]) => `${a}${spelled(key, how)}${b}:${value}${c}`).join(',')}}`,
    ),
  json: fc
    .tuple(
      space,
      fc.oneof({ weight: 9, arbitrary: tie('object') }, { weight: 1, arbitrary: tie('value') }),
      space,
    )
    .map((parts) => parts.join('')),
}));
/** Where a body is cut into pieces. */
export const cuts = fc.array(fc.nat(), { maxLength: 6 });

const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'system'),
  content: fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.array(
      fc.record({
        type: fc.constantFrom('text', 'image_url', 'input_audio', 'document', 'reasoning'),
        text: fc.string(),
      }),
      {
        maxLength: 3,
      },
    ),
  ),
});
const part = fc.record({
  type: fc.constantFrom('input_text', 'input_image', 'input_file', 'computer_screenshot'),
});
const item = fc.record(
  {
    type: fc.constantFrom('message', 'function_call', 'function_call_output'),
    content: fc.array(part, { maxLength: 2 }),
    output: fc.oneof(fc.string(), part, fc.array(part, { maxLength: 2 })),
  },
  { requiredKeys: ['type'] },
);
/** Bodies as clients send them. */
export const chat = fc.record(
  {
    model: shortText,
    messages: fc.array(message, { maxLength: 4 }),
    input: fc.array(item, { maxLength: 3 }),
    stream: fc.boolean(),
    tools: fc.array(fc.record({ type: fc.constant('function') }), { maxLength: 2 }),
    metadata: fc.record({ user_id: shortText }),
    conversation: fc.oneof(shortText, fc.record({ id: shortText })),
    max_tokens: fc.nat(),
    prompt_cache_key: shortText,
  },
  { requiredKeys: [] },
);
