import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import type { Logger } from 'pino';
import type { Changed } from '../control/planning/plan-history.js';
import { type ErrorCode, WardropError } from '../errors.js';
import { splitAddress, targetText } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';
import { listenError } from '../listen-error.js';
import { whatChangedText } from '../optimizer/index.js';
import { PASSED_ON_HEADER } from '../peers/admin-question.js';
import { CONTROL_HEADER } from './control-header.js';
import { issuedSnapshot } from './issued-snapshot.js';
import type { ServerMetrics } from './metrics/server-metrics.js';
import { streamRecording } from './record-stream.js';
import { readDecideRequest } from './requests/decide-request.js';
import { readOperatorRequest } from './requests/operator-request.js';
import { readChanges } from './requests/what-if-request.js';
import type { ShownServer } from './shown-server.js';
import { dashboard } from './views/dashboard.js';
import { decisionView } from './views/decision-view.js';
import { envoysView } from './views/envoys-view.js';
import { explainedText } from './views/explained-text.js';
import { fleetView } from './views/fleet-view.js';
import { overview } from './views/overview.js';
import { peersView } from './views/peers-view.js';
import { serverStatus } from './views/status.js';

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
  addPages(app, server, metrics);
  addViews(app, server);
  addQuestions(app, server);
  addOperations(app, server);
  app.use((request: Request, response: Response) => {
    response.status(404).json({
      code: 'WARDROP_QUERY_INVALID' satisfies ErrorCode,
      message: `there is no ${request.method} ${request.path}; / lists what there is`,
    });
  });
  const onError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
    const status = statusOf(error);
    if (status >= 500) log.error({ err: error }, 'an API call failed');
    const message = error instanceof Error ? error.message : String(error);
    const code = codeOf(error, status);
    response.status(status).json({ ...(code === undefined ? {} : { code }), message });
  };
  app.use(onError);
  return app;
}

function addPages(app: Express, server: ShownServer, metrics: AdminOptions['metrics']): void {
  app.get('/', (request, response) => {
    response.type('html').send(dashboard(overview(server), text(request.query.pool)));
  });
  app.get('/live', (_request, response) => {
    response.json({ live: true });
  });
  app.get('/ready', (_request, response) => {
    const { plan } = server;
    if (plan !== null) response.json({ ready: true, planId: plan.id });
    else response.status(503).json({ ready: false, reason: 'no plan is published yet' });
  });
  app.get('/metrics', async (_request, response) => {
    response.type(metrics.contentType).send(await metrics.page());
  });
}

/** How things are. */
function addViews(app: Express, server: ShownServer): void {
  app.get('/v1/status', (_request, response) => {
    response.json(serverStatus(overview(server)));
  });
  app.get('/v1/plan', (_request, response) => {
    if (server.plan === null) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
    response.json(server.plan);
  });
  app.get('/v1/fleet', (_request, response) => {
    response.json(fleetView(server));
  });
  app.get('/v1/snapshot', (request, response) => {
    const { bytes } = issuedSnapshot(server, text(request.query.frontend));
    response.type('application/octet-stream').send(Buffer.from(bytes));
  });
  app.get('/v1/envoys', (request, response) => {
    response.json(envoysView(server, text(request.query.node)));
  });
  app.get('/v1/peers', (_request, response) => {
    response.json(peersView(server));
  });
  app.get('/v1/alarms', (_request, response) => {
    response.json({ alarms: server.alarms.list });
  });
  app.get('/v1/config', (_request, response) => {
    response.json({
      file: server.config.file,
      config: server.config.shown,
      warnings: server.config.warnings,
    });
  });
  app.get('/v1/record', (_request, response) => streamRecording(server, response));
}

/** Why they are so, and what would be if. */
function addQuestions(app: Express, server: ShownServer): void {
  app.get(['/v1/explain', '/v1/changes'], passOn(server));
  app.get('/v1/explain', (request, response) => {
    const { frontend, pool, engine } = request.query;
    const explained = server.explain({ frontend: text(frontend), pool: text(pool), engine: text(engine) });
    response.format({
      json: () => response.json(explained),
      text: () => response.send(explainedText(explained)),
      html: () => response.type('text').send(explainedText(explained)),
    });
  });
  app.post('/v1/decide', express.json({ limit: '4mb' }), (request, response) => {
    response.json(decisionView(server, readDecideRequest(request.body)));
  });
  app.get('/v1/changes', async (request, response) => {
    const changed = await server.questions.changes(planNumber(text(request.query.since)));
    response.format({
      json: () => response.json(changed),
      text: () => response.send(changedText(changed)),
      html: () => response.type('text').send(changedText(changed)),
    });
  });
  app.post('/v1/what-if', express.json({ limit: '64kb' }), async (request, response) => {
    response.json(await server.questions.whatIf(readChanges(request.body)));
  });
  app.get('/v1/headroom', async (_request, response) => {
    response.json(await server.questions.headroom());
  });
}

function addOperations(app: Express, server: ShownServer): void {
  app.get('/v1/operations', (_request, response) => {
    response.json(server.signals.orders);
  });
  app.post('/v1/operations', express.json({ limit: '64kb' }), (request, response) => {
    server.act(readOperatorRequest(request.body));
    response.json(server.signals.orders);
  });
}

/** Only the control server that makes the plans knows why they are so. */
function passOn(server: ShownServer): RequestHandler {
  return async (request, response, next) => {
    const { isPlanning, peers } = server;
    if (isPlanning || peers.leader === undefined || request.headers[PASSED_ON_HEADER] !== undefined) {
      next();
      return;
    }
    const accept = request.headers.accept ?? '*/*';
    const { status, type, body } = await peers.askLeader({ path: request.originalUrl, accept });
    response.status(status).type(type).send(body);
  };
}

/** A query parameter that was given once. */
function text(parameter: unknown): string | undefined {
  return typeof parameter === 'string' ? parameter : undefined;
}

/** @throws {WardropError} WARDROP_QUERY_INVALID */
function planNumber(since: string | undefined): number | undefined {
  if (since === undefined || /^\d{1,15}$/.test(since)) return since === undefined ? undefined : Number(since);
  throw new WardropError(
    'WARDROP_QUERY_INVALID',
    `since=${since}: expected the number of a plan, such as 12`,
  );
}

function changedText(changed: Changed): string {
  const { since, until } = changed;
  const time = (ms: number) => new Date(ms).toISOString();
  const title = `From plan ${since.sequence} (${time(since.createdAtMs)}) to plan ${until.sequence} (${time(until.createdAtMs)}):`;
  return `${title}\n${whatChangedText(changed)}\n`;
}

const statuses: Partial<Record<ErrorCode, number>> = {
  WARDROP_QUERY_INVALID: 400,
  WARDROP_BUSY: 503,
  WARDROP_NOT_READY: 503,
  WARDROP_PROGRAM_CHANGED: 503,
};

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
