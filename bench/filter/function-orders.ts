import { assemble, readModule } from '../../simulator/filter-host/module-text.js';
import { Random } from '../../simulator/random.js';

/** The module with its functions in another order, the same for the same seed: it does the same, with its code in other places. */
export function inAnotherOrder(wasm: Uint8Array, seed: number): Uint8Array {
  const random = new Random(seed, 'function order');
  const { tree, features } = readModule(wasm);
  const functions = shuffled(
    tree.filter((field) => field[0] === 'func'),
    random,
  );
  return assemble({ tree: tree.map((field) => (field[0] === 'func' ? functions.pop()! : field)), features });
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, place: random.unit() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
