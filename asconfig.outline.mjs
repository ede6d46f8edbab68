// What `@outlined` means to the filter's compiler: the function is never inlined, not even where it is called once. It is for what
// happens to few requests, so that what happens to all of them lies close together. Between two requests of a quiet Envoy caches
// get cold, and then it is the lines of code to be fetched that cost time, more than the instructions.

export default class Outline {
  afterInitialize() {
    const functions = [...this.program.elementsByName.values()].filter(isOutlined);
    this.names = functions.map(({ internalName }) => internalName);
  }

  afterCompile(module) {
    for (const name of this.names) {
      this.binaryen.setPassArgument('no-inline', name);
      module.runPasses(['no-inline']);
    }
    this.binaryen.clearPassArguments();
  }
}

function isOutlined({ declaration }) {
  return declaration?.decorators?.some(({ name }) => name.text === 'outlined') ?? false;
}
