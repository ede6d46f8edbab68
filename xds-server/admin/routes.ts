import { existsSync, readFileSync } from 'node:fs';
import express, { type Express, type RequestHandler, type Response } from 'express';
import { WardropError } from '../errors.js';
import { packageFile } from '../package-file.js';
import { PASSED_ON_HEADER } from '../peers/admin-question.js';
import { issuedSnapshot } from './issued-snapshot.js';
import { jsonText } from './json-text.js';
import type { ServerMetrics } from './metrics/server-metrics.js';
import { streamRecording } from './record-stream.js';
import { readDecideRequest } from './requests/decide-request.js';
import { readOperatorRequest } from './requests/operator-request.js';
import { planName, text } from './requests/query.js';
import { readChanges } from './requests/what-if-request.js';
import { sendPieces } from './send-pieces.js';
import type { ShownServer } from './shown-server.js';
import { changedText } from './views/changed-text.js';
import { dashboard } from './views/dashboard.js';
import { decisionView } from './views/decision-view.js';
import { envoysView } from './views/envoys-view.js';
import { explainedText } from './views/explained-text.js';
import { fleetView } from './views/fleet-view.js';
import { overview } from './views/overview.js';
import { peersView } from './views/peers-view.js';
import { runbook } from './views/runbook.js';
import { serverStatus } from './views/status.js';

type Metrics = Pick<ServerMetrics, 'contentType' | 'page'>;

/** Every path of the API. */
export function addRoutes(app: Express, server: ShownServer, metrics: Metrics): void {
  addPages(app, server, metrics);
  addViews(app, server);
  addQuestions(app, server);
  addOperations(app, server);
}

function addPages(app: Express, server: ShownServer, metrics: Metrics): void {
  app.get('/', (request, response) => {
    response.type('html').send(dashboard(overview(server), text(request.query.pool)));
  });
  app.get('/runbook', (_request, response) => {
    response.type('html').send(runbook(manual()));
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
    await sendPieces(response.type(metrics.contentType), await metrics.page());
  });
}

/** How things are. */
function addViews(app: Express, server: ShownServer): void {
  app.get('/v1/status', (_request, response) => {
    response.json(serverStatus(overview(server)));
  });
  app.get('/v1/plan', async (_request, response) => {
    if (server.plan === null) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
    await sendPieces(response.type('json'), jsonText(server.plan));
  });
  app.get('/v1/fleet', async (_request, response) => {
    await sendPieces(response.type('json'), jsonText(fleetView(server)));
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
  app.get('/v1/config', async (_request, response) => {
    const { file, shown, warnings } = server.config;
    await sendPieces(response.type('json'), jsonText({ file, config: shown, warnings }));
  });
  app.get('/v1/record', (_request, response) => streamRecording(server, response));
}

/** Why they are so, and what would be if. */
function addQuestions(app: Express, server: ShownServer): void {
  app.get(['/v1/explain', '/v1/changes'], passOn(server));
  app.get('/v1/explain', async (request, response) => {
    const { frontend, pool, engine, plan } = request.query;
    const explained = await server.questions.explain({
      frontend: text(frontend),
      pool: text(pool),
      engine: text(engine),
      plan: planName('plan', text(plan)),
    });
    answer(response, explained, explainedText);
  });
  app.post('/v1/decide', express.json({ limit: '4mb' }), (request, response) => {
    response.json(decisionView(server, readDecideRequest(request.body)));
  });
  app.get('/v1/changes', async (request, response) => {
    const changed = await server.questions.changes(planName('since', text(request.query.since)));
    answer(response, changed, changedText);
  });
  app.post('/v1/what-if', express.json({ limit: '64kb' }), async (request, response) => {
    response.json(await server.questions.whatIf(readChanges(request.body)));
  });
  app.get('/v1/headroom', async (_request, response) => {
    response.json(await server.questions.headroom());
  });
}

/** As JSON, or in words for who asks for text, as browsers do. */
function answer<T>(response: Response, told: T, inWords: (told: T) => string): void {
  response.format({
    json: () => response.json(told),
    text: () => response.send(inWords(told)),
    html: () => response.type('text').send(inWords(told)),
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

/** @throws {WardropError} WARDROP_QUERY_INVALID where the installation has no manual */
function manual(): string {
  const file = packageFile('docs', 'operations.md');
  if (existsSync(file)) return readFileSync(file, 'utf8');
  throw new WardropError('WARDROP_QUERY_INVALID', 'this installation lacks docs/operations.md, the manual');
}
