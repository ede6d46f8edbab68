import { writeFileSync } from 'node:fs';
import { readArguments } from '../arguments.js';
import { measureSaving, type SavingCost } from './saving.js';
import { vllmPage } from './vllm-page.js';
import { measureWatching, startReplicas } from './watching.js';

/** What `--json FILE` writes. */
interface Figures {
  readonly replicas: number;
  readonly pageBytes: number;
  readonly probesCores: number;
  readonly pagesCores: number;
  readonly pagesPerSecond: number;
  readonly saving: SavingCost;
}

const REPLICAS = 1_000;

async function main(): Promise<void> {
  const { quick, json } = readArguments('signals');
  const seconds = quick ? 8 : 30;
  const page = vllmPage(1);
  const replicas = await startReplicas(REPLICAS, page);
  try {
    const probes = await measureWatching(replicas.ports, 'none', seconds);
    const both = await measureWatching(replicas.ports, 'vllm', seconds);
    const figures: Figures = {
      replicas: REPLICAS,
      pageBytes: Buffer.byteLength(page),
      probesCores: probes.cores,
      pagesCores: both.cores - probes.cores,
      pagesPerSecond: both.pagesPerSecond,
      saving: measureSaving(),
    };
    console.log(
      `${REPLICAS} replicas, pages of ${(figures.pageBytes / 1024).toFixed(1)} KB as vLLM exports them with all histograms`,
    );
    console.log(`health probes, twice a second: ${percent(figures.probesCores)} of a core`);
    console.log(
      `metrics pages, every 2 s:      ${percent(figures.pagesCores)} of a core (${figures.pagesPerSecond.toFixed(0)} pages/s)`,
    );
    console.log('processor time of the watching process; the replicas are served by another one');
    const { saveMs, pieceMs, textBytes, fileBytes, restoreMs } = figures.saving;
    console.log(
      `beginning of a recording of 100 frontends and 1000 engines: ${mebibytes(textBytes)} of text, ${mebibytes(fileBytes)} in the file;`,
    );
    console.log(
      `${saveMs.toFixed(0)} ms at one go, then pieces of at most ${pieceMs.toFixed(0)} ms; read and taken over in ${restoreMs.toFixed(0)} ms`,
    );
    if (json) writeFileSync(json, `${JSON.stringify(figures, null, 2)}\n`);
  } finally {
    replicas.stop();
  }
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

await main();
