import type { Dispatcher } from 'undici';
import type { Message } from '../engine/tokens.js';

export interface ChatOptions {
  readonly model: string;
  readonly sessionId: string;
  readonly messages: readonly Message[];
  readonly outputTokens: number;
  readonly streamed: boolean;
  /** The client leaves when the answer is not complete after this time. */
  readonly timeoutMs: number;
}

/** How a request ended. Milliseconds count from the call. */
export interface ChatResult {
  /** A complete answer; refused because of load; the client left; anything else. */
  readonly end: 'answered' | 'shed' | 'timeout' | 'error';
  /** Undefined when no response headers came. */
  readonly status: number | undefined;
  /** First bytes of a streamed answer; undefined for others and when none came. */
  readonly firstTokenMs: number | undefined;
  readonly elapsedMs: number;
  readonly content: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What went wrong, for the report. */
  readonly detail?: string;
}

class ClientTimeout extends Error {}

/** Sends one chat-completions request; never rejects. */
export function chat(dispatcher: Dispatcher, options: ChatOptions): Promise<ChatResult> {
  const startedAt = performance.now();
  const { streamed } = options;
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let status: number | undefined;
    let headers: ChatResult['headers'] = {};
    let firstByteMs: number | undefined;
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      finish('timeout', `no complete answer within ${options.timeoutMs} ms`);
      controller?.abort(new ClientTimeout());
    }, options.timeoutMs);

    const finish = (end: ChatResult['end'], detail?: string, answer?: Answer) => {
      clearTimeout(timer);
      resolve({
        end,
        status,
        headers,
        firstTokenMs: streamed && status === 200 ? firstByteMs : undefined,
        elapsedMs: performance.now() - startedAt,
        content: answer?.content ?? '',
        promptTokens: answer?.promptTokens ?? 0,
        cachedTokens: answer?.cachedTokens ?? 0,
        ...(detail === undefined ? {} : { detail }),
      });
    };

    dispatcher.dispatch(
      {
        path: '/v1/chat/completions',
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-session-id': options.sessionId },
        body: requestBody(options),
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(requestController) {
          controller = requestController;
          if (performance.now() - startedAt > options.timeoutMs) requestController.abort(new ClientTimeout());
        },
        onResponseStart(_, statusCode, responseHeaders) {
          status = statusCode;
          headers = responseHeaders;
        },
        onResponseData(_, chunk) {
          firstByteMs ??= performance.now() - startedAt;
          chunks.push(chunk);
        },
        onResponseEnd() {
          const text = Buffer.concat(chunks).toString();
          if (status === 429) return finish('shed', text);
          if (status !== 200) return finish('error', `${status} ${text}`);
          const answer = streamed ? parseStream(text) : parseAnswer(text);
          if (answer) finish('answered', undefined, answer);
          else finish('error', `not a complete answer: ${text.slice(-200)}`);
        },
        onResponseError(_, error) {
          finish('error', error.message);
        },
      },
    );
  });
}

function requestBody({ model, messages, outputTokens, streamed }: ChatOptions): string {
  const common = { model, messages, max_tokens: outputTokens };
  return JSON.stringify(
    streamed ? { ...common, stream: true, stream_options: { include_usage: true } } : common,
  );
}

interface Answer {
  readonly content: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

interface UsageBody {
  readonly prompt_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number } | null;
}

function parseAnswer(text: string): Answer | undefined {
  try {
    const body = JSON.parse(text) as { choices: [{ message: { content: string } }]; usage: UsageBody };
    return { content: body.choices[0].message.content, ...tokensOf(body.usage) };
  } catch {
    return undefined;
  }
}

/** Undefined unless the stream ran to its end. */
function parseStream(text: string): Answer | undefined {
  if (!text.endsWith('data: [DONE]\n\n')) return undefined;
  let content = '';
  let usage: UsageBody | undefined;
  for (const event of text.split('\n\n')) {
    if (!event.startsWith('data: {')) continue;
    const body = JSON.parse(event.slice('data: '.length)) as {
      choices: { delta: { content?: string } }[];
      usage?: UsageBody;
    };
    content += body.choices[0]?.delta.content ?? '';
    usage = body.usage ?? usage;
  }
  return usage && { content, ...tokensOf(usage) };
}

function tokensOf(usage: UsageBody): Pick<Answer, 'promptTokens' | 'cachedTokens'> {
  return {
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  };
}
