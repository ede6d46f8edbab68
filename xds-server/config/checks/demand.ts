import type { Path } from '../problem.js';
import type { Partly } from '../schema/schema-type.js';
import type { Draft, Findings } from './findings.js';

type Tokens = Partly<{ promptTokens: number; uncachedPromptTokens: number }>;

export function checkDemand(config: Draft, found: Findings): void {
  for (const [frontendId, demand] of Object.entries(config.demand ?? {})) {
    const path = ['demand', frontendId];
    found.known(path, 'frontend', frontendId, found.frontendIds, 'key');
    checkTokens(found, path, demand);
    if (demand?.requestsPerSecond !== undefined && found.models.size > 1) {
      found.problem([...path, 'requestsPerSecond'], 'does not say for which model', {
        at: 'key',
        hint: `give it under models, such as models: {${[...found.models][0]}: {requestsPerSecond: …}}`,
      });
    }
    for (const [model, rate] of Object.entries(demand?.models ?? {})) {
      found.known([...path, 'models', model], 'model', model, found.models, 'key');
      checkTokens(found, [...path, 'models', model], { ...demand, ...rate });
    }
    for (const [pool, rate] of Object.entries(demand?.pools ?? {})) {
      const poolPath = [...path, 'pools', pool];
      if (found.knownPool(poolPath, pool, 'key') && found.models.has(pool)) {
        found.problem(poolPath, 'is the pool of requests without needs', {
          at: 'key',
          hint: 'give it under models',
        });
      }
      const model = found.pools?.find(({ id }) => id === pool)?.model ?? '';
      checkTokens(found, poolPath, { ...demand, ...demand?.models?.[model], ...rate });
    }
  }
}

function checkTokens(found: Findings, path: Path, rate: Tokens | undefined): void {
  const { promptTokens, uncachedPromptTokens } = rate ?? {};
  if (
    promptTokens !== undefined &&
    uncachedPromptTokens !== undefined &&
    uncachedPromptTokens > promptTokens
  ) {
    found.problem([...path, 'uncachedPromptTokens'], `must be at most promptTokens, ${promptTokens}`);
  }
}
