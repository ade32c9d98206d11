/** Values by name, as many as were asked for last; one that fails is forgotten at once. */
export class Newest<T extends Promise<unknown>> {
  private readonly most: number;
  private readonly held = new Map<string, T>();

  constructor(most: number) {
    this.most = most;
  }

  /** The value of a name; `make` makes it where there is none, and those who ask meanwhile wait for the same. */
  get(name: string, make: () => T): T {
    const value = this.held.get(name) ?? this.made(name, make);
    this.held.delete(name);
    this.held.set(name, value);
    const [oldest] = this.held.keys();
    if (this.held.size > this.most && oldest !== undefined) this.held.delete(oldest);
    return value;
  }

  private made(name: string, make: () => T): T {
    const value = make();
    value.catch(() => {
      if (this.held.get(name) === value) this.held.delete(name);
    });
    return value;
  }
}
