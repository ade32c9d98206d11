import type { ChatTemplate } from '../template/template.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { CallParser, Family } from './family.ts';
import { HARMONY } from './harmony.ts';
import { argumentTagCalls, bareJsonCall, deepSeekCalls, hermesCalls, kimiCalls, mistralCalls } from './marked-calls.ts';
import { dsmlCalls, functionTagCalls, invokeTagCalls } from './tagged.ts';
import { noCalls, THINK, thinkThenCalls } from './think-then-calls.ts';

/** A family whose turns are reasoning and then text or calls. `in` are texts of which a template of the family holds every one. */
type Kind = {
  readonly name: string;
  readonly in: readonly string[];
  readonly parse: CallParser;
  readonly openers: readonly string[];
  readonly others?: readonly string[];
  readonly stops: readonly string[];
  readonly endsWithNextHeader?: true;
  readonly callIds?: Family['callIds'];
};

const CHATML_STOPS = ['<|im_end|>', '<|endoftext|>'];
const DEEPSEEK_STOPS = ['<｜end▁of▁sentence｜>'];
const LLAMA_STOPS = ['<|eot_id|>', '<|eom_id|>', '<|end_of_text|>'];

/** In the order in which they are tried: the first whose texts all stand in the template's source. */
const KINDS: readonly Kind[] = [
  {
    name: 'kimi',
    in: ['<|tool_calls_section_begin|>'],
    parse: kimiCalls,
    openers: ['<|tool_calls_section_begin|>'],
    others: ['<|tool_calls_section_end|>', '<|tool_call_begin|>', '<|tool_call_argument_begin|>', '<|tool_call_end|>'],
    stops: ['<|im_end|>', '[EOS]'],
    callIds: 'sampled',
  },
  { name: 'minimax', ...tagged('<minimax:tool_call>', '</minimax:tool_call>'), parse: invokeTagCalls, stops: ['[e~['] },
  {
    name: 'deepseek_dsml',
    ...tagged('<｜DSML｜function_calls>', '</｜DSML｜function_calls>'),
    in: ['｜DSML｜'],
    parse: dsmlCalls,
    stops: DEEPSEEK_STOPS,
  },
  {
    name: 'deepseek',
    in: ['<｜tool▁calls▁begin｜>'],
    parse: deepSeekCalls,
    openers: ['<｜tool▁calls▁begin｜>'],
    others: ['<｜tool▁calls▁end｜>', '<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>', '<｜tool▁sep｜>'],
    stops: DEEPSEEK_STOPS,
  },
  {
    name: 'glm',
    ...tagged('<tool_call>', '</tool_call>'),
    in: ['<tool_call>', '<arg_key>', '<|observation|>'],
    parse: argumentTagCalls,
    stops: ['<|user|>', '<|observation|>', '<|endoftext|>'],
    endsWithNextHeader: true,
  },
  {
    name: 'function_tags',
    ...tagged('<tool_call>', '</tool_call>'),
    in: ['<tool_call>', '<function=', '<parameter='],
    parse: functionTagCalls,
    stops: CHATML_STOPS,
  },
  { name: 'hermes', ...tagged('<tool_call>', '</tool_call>'), parse: hermesCalls, stops: [...CHATML_STOPS, '<|eot_id|>'] },
  {
    name: 'llama3',
    in: ['<|start_header_id|>', '"parameters": ', 'tool_calls'],
    parse: bareJsonCall,
    openers: ['<|python_tag|>'],
    stops: LLAMA_STOPS,
  },
  {
    name: 'mistral',
    in: ['[TOOL_CALLS]'],
    parse: mistralCalls,
    openers: ['[TOOL_CALLS]'],
    others: ['[ARGS]', '[CALL_ID]'],
    stops: ['</s>'],
    callIds: 'nine',
  },
];

/** What ends a turn in templates whose calls we cannot read. */
const OTHER_STOPS = ['<|im_end|>', '<|eot_id|>', '<end_of_turn>', '<|end|>', '<|endoftext|>', '</s>', '<｜end▁of▁sentence｜>', '<turn|>'];

/**
 * The family of a template, by the markers in its source and the tokens of its tokenizer; no name of a model is looked at.
 * A template of no known family can be used without tools, as long as a token ends its turns.
 */
export function familyOf(tokenizer: Pick<Tokenizer, 'addedTokens'>, template: Pick<ChatTemplate, 'source'>): Family {
  const { source } = template;
  if (['<|channel|>', '<|message|>', '<|call|>'].every((text) => source.includes(text))) return HARMONY;
  const tokens = new Set(tokenizer.addedTokens.map(({ content }) => content));
  const reasons = source.includes('think>') || tokens.has(THINK.open);
  const kind = KINDS.find((candidate) => candidate.in.every((text) => source.includes(text)));
  const reasoning = reasons ? THINK : null;
  const tags = reasons ? [THINK.open, THINK.close] : [];
  if (kind === undefined)
    return {
      name: 'plain',
      stops: OTHER_STOPS.filter((text) => source.includes(text)),
      closes: [],
      endsWithNextHeader: false,
      markers: tags,
      reasoning,
      read: thinkThenCalls({ reasoning, openers: [] }, noCalls),
      callIds: 'own',
      noTools: 'its template has no form of tool calls that is known here',
    };
  return {
    name: kind.name,
    stops: kind.stops,
    closes: [],
    endsWithNextHeader: kind.endsWithNextHeader ?? false,
    markers: [...kind.openers, ...(kind.others ?? []), ...tags],
    reasoning,
    read: thinkThenCalls({ reasoning, openers: kind.openers }, kind.parse),
    callIds: kind.callIds ?? 'own',
    noTools: null,
  };
}

function tagged(open: string, close: string): { in: string[]; openers: string[]; others: string[] } {
  return { in: [open], openers: [open], others: [close] };
}
