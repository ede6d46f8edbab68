import type { ErrorRequestHandler } from 'express';
import type { Logger } from 'pino';
import { type ErrorCode, WardropError } from '../errors.js';

const statuses: Partial<Record<ErrorCode, number>> = {
  WARDROP_QUERY_INVALID: 400,
  WARDROP_BUSY: 503,
  WARDROP_NOT_READY: 503,
  WARDROP_PROGRAM_CHANGED: 503,
};

/** Answers with the code and message of what was thrown. */
export function answerError(log: Pick<Logger, 'error'>): ErrorRequestHandler {
  return (error: unknown, _request, response, _next) => {
    const status = statusOf(error);
    // What can be asked again later is told to who asked, who may ask all the time.
    if (status === 500) log.error({ err: error }, 'an API call failed');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    const code = codeOf(error, status);
    response.status(status).json({ ...(code === undefined ? {} : { code }), message });
  };
}

/** What Express refuses by itself, such as a body that is no JSON, is a question that cannot be answered. */
function codeOf(error: unknown, status: number): ErrorCode | undefined {
  if (error instanceof WardropError) return error.code;
  return status >= 400 && status < 500 ? 'WARDROP_QUERY_INVALID' : undefined;
}

function statusOf(error: unknown): number {
  if (error instanceof WardropError) return statuses[error.code] ?? 500;
  // What Express finds wrong with a request carries its status.
  const { status } = error as { status?: unknown };
  return typeof status === 'number' ? status : 500;
}
