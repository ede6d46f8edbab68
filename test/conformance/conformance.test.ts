import { afterEach, beforeEach, describe, it } from 'vitest';
import { deltaScenarios } from './scenarios/delta.js';
import { answerScenarios } from './scenarios/sotw-answers.js';
import { orderScenarios } from './scenarios/sotw-order.js';
import { streamScenarios } from './scenarios/sotw-streams.js';
import { subscriptionScenarios } from './scenarios/sotw-subscriptions.js';
import { inMemoryServer, type Server, socketServer } from './server.js';

const sotw = [...subscriptionScenarios, ...answerScenarios, ...streamScenarios, ...orderScenarios];
const protocols = { 'state of the world': sotw, delta: deltaScenarios };
const servers = { 'in memory': async () => inMemoryServer(), 'over sockets': socketServer };

for (const [protocol, scenarios] of Object.entries(protocols)) {
  for (const [where, start] of Object.entries(servers)) {
    describe(`${protocol}, ${where}`, () => {
      let server: Server;
      beforeEach(async () => {
        server = await start();
      });
      afterEach(() => server.stop());

      for (const { rule, name, run } of scenarios) it(`${rule}: ${name}`, () => run(server));
    });
  }
}
