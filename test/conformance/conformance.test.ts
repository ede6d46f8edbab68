import { afterEach, beforeEach, describe, it } from 'vitest';
import { deltaScenarios } from './delta-scenarios.js';
import { inMemoryServer, type Server, socketServer } from './server.js';
import { sotwScenarios } from './sotw-scenarios.js';

const protocols = { 'state of the world': sotwScenarios, delta: deltaScenarios };
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
