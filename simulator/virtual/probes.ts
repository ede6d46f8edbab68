/** What one prober thinks of every engine: two contrary results in a row change it. */
export class Probes {
  readonly ready: boolean[];
  readonly #contrary: Uint8Array;

  constructor(engines: number) {
    this.ready = Array.from({ length: engines }, () => true);
    this.#contrary = new Uint8Array(engines);
  }

  add(results: readonly boolean[]): void {
    results.forEach((isUp, engine) => {
      this.#contrary[engine] = isUp === this.ready[engine] ? 0 : this.#contrary[engine]! + 1;
      if (this.#contrary[engine]! < 2) return;
      this.ready[engine] = isUp;
      this.#contrary[engine] = 0;
    });
  }
}
