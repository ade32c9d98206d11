/** An agent that comes with the product: what harbor is told to run. */
export type BuiltinAgent = {
  readonly name: string;
  readonly importPath: string;
  readonly kwargs: Readonly<Record<string, string | number | boolean>>;
};

const TURN: BuiltinAgent = { name: 'turn', importPath: 'stillroom_harbor.turn_agent:TurnAgent', kwargs: { stop_word: 'done' } };

/** The built-in agent of that name, or why it cannot be run. */
export function builtinAgent(name: string): BuiltinAgent | { readonly refused: string } {
  if (name === TURN.name) return TURN;
  if (name === 'pi') return { refused: 'agent pi (terminus-2) is not built yet; the built-in agent of this version is: turn' };
  return { refused: `no agent ${JSON.stringify(name)}: stored agents are not built yet; the built-in agent of this version is: turn` };
}
