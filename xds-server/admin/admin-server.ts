import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Express, type Request, type Response } from 'express';
import type { Logger } from 'pino';
import type { ErrorCode } from '../errors.js';
import { splitAddress, targetText } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';
import { listenError } from '../listen-error.js';
import { answerError } from './answer-error.js';
import { CONTROL_HEADER } from './control-header.js';
import type { ServerMetrics } from './metrics/server-metrics.js';
import { addRoutes } from './routes.js';
import type { ShownServer } from './shown-server.js';

export interface AdminOptions {
  /** Port 0 takes a free one. */
  readonly listen: Address;
  readonly server: ShownServer;
  readonly metrics: Pick<ServerMetrics, 'contentType' | 'page'>;
  readonly log: Pick<Logger, 'info' | 'error'>;
}

export interface AdminServer {
  stop(): Promise<void>;
}

/** Serves the API, metrics and health of a control server. */
export async function startAdmin({ listen, server, metrics, log }: AdminOptions): Promise<AdminServer> {
  const { host, port } = splitAddress(listen);
  const http = await new Promise<Server>((resolve, reject) => {
    const app = adminApp(server, metrics, log);
    const started = app.listen(port, host, (error) => {
      if (error === undefined) resolve(started);
      else reject(listenError('the API', listen, error));
    });
  });
  const bound = targetText({ host, port: (http.address() as AddressInfo).port });
  log.info({ listen: bound }, 'serving the admin API');
  return {
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}

function adminApp(
  server: ShownServer,
  metrics: AdminOptions['metrics'],
  log: Pick<Logger, 'error'>,
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('json spaces', 2);
  app.use((_request, response, next) => {
    response.set(CONTROL_HEADER, '1');
    next();
  });
  addRoutes(app, server, metrics);
  app.use((request: Request, response: Response) => {
    response.status(404).json({
      code: 'WARDROP_QUERY_INVALID' satisfies ErrorCode,
      message: `there is no ${request.method} ${request.path}; / lists what there is`,
    });
  });
  app.use(answerError(log));
  return app;
}
