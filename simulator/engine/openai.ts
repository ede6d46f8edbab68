import type { Message } from './tokens.js';

/** Length of answers to requests that do not limit it. */
const NATURAL_OUTPUT_TOKENS = 64;

/** A chat-completions request as far as the simulator understands it. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  /** Exactly as long as the request allows, or of a natural length when it does not say. */
  readonly outputTokens: number;
  readonly finishReason: 'length' | 'stop';
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** An error as vLLM words it; `status` is also the body's code. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;

  constructor(status: number, type: string, message: string) {
    super(message);
    this.status = status;
    this.type = type;
  }

  body(): string {
    return JSON.stringify({
      error: { message: this.message, type: this.type, param: null, code: this.status },
    });
  }
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequestError', message);
}

/** Throws an ApiError when the body is not a chat request. */
export function parseChatRequest(text: string): ChatRequest {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw badRequest(`The body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(body)) throw badRequest('The body must be a JSON object');
  const { model, messages, stream = false, stream_options: streamOptions } = body;
  if (typeof model !== 'string') throw badRequest('"model" must be a string');
  if (!Array.isArray(messages) || messages.length === 0)
    throw badRequest('"messages" must be a list of messages');
  if (typeof stream !== 'boolean') throw badRequest('"stream" must be true or false');
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && (maxTokens as number) >= 1)) {
    throw badRequest('"max_completion_tokens" (or "max_tokens") must be a whole number of at least 1');
  }
  return {
    model,
    messages: messages.map(parseMessage),
    outputTokens: (maxTokens as number | undefined) ?? NATURAL_OUTPUT_TOKENS,
    finishReason: maxTokens === undefined ? 'stop' : 'length',
    stream,
    includeUsage: isObject(streamOptions) && streamOptions.include_usage === true,
  };
}

function parseMessage(message: unknown, index: number): Message {
  if (!isObject(message) || typeof message.role !== 'string') {
    throw badRequest(`"messages[${index}].role" must be a string`);
  }
  const { role, content = '' } = message;
  if (typeof content === 'string') return { role, content };
  if (!Array.isArray(content))
    throw badRequest(`"messages[${index}].content" must be a string or a list of parts`);
  const texts = content.map((part) => (isObject(part) && typeof part.text === 'string' ? part.text : ''));
  return { role, content: texts.join('') };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface Usage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** The parts of an answer that all its chunks share. */
export interface AnswerHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

export function completionBody(
  head: AnswerHead,
  content: string,
  finishReason: string,
  usage: Usage,
): string {
  const message = { role: 'assistant', content };
  return JSON.stringify({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
    usage: usageBody(usage),
  });
}

/** Server-sent event that opens the answer; sent with the first token. */
export function roleEvent(head: AnswerHead): string {
  return chunk(head, { role: 'assistant', content: '' }, null);
}

/** Server-sent event of one token; the last one has a finish reason. */
export function tokenEvent(head: AnswerHead, content: string, finishReason: string | null): string {
  return chunk(head, { content }, finishReason);
}

export function usageEvent(head: AnswerHead, usage: Usage): string {
  return event({ ...head, object: 'chat.completion.chunk', choices: [], usage: usageBody(usage) });
}

export const DONE_EVENT = 'data: [DONE]\n\n';

function chunk(head: AnswerHead, delta: object, finishReason: string | null): string {
  const choice = { index: 0, delta, logprobs: null, finish_reason: finishReason };
  return event({ ...head, object: 'chat.completion.chunk', choices: [choice] });
}

function event(body: object): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}

function usageBody({ promptTokens, cachedTokens, completionTokens }: Usage): object {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + completionTokens,
    completion_tokens: completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

export function modelsBody(models: readonly string[], maxModelTokens: number): string {
  const data = models.map((id) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: 'wardrop-simulator',
    root: id,
    parent: null,
    max_model_len: maxModelTokens,
  }));
  return JSON.stringify({ object: 'list', data });
}
