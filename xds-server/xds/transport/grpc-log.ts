import * as grpc from '@grpc/grpc-js';
import type { Logger } from 'pino';

/** Has gRPC say in this log what it would say on standard error. */
export function logGrpcTo(log: Pick<Logger, 'warn'>): void {
  const say = (...words: unknown[]) => log.warn({ by: 'gRPC' }, words.join(' '));
  grpc.setLogger({ error: say, info: say, debug: say });
}
