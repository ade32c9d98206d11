import type { ChatMessage, ToolDefinition } from '../renderer.ts';

/** What a template is rendered with besides the messages. */
export type TemplateInput = {
  readonly messages: readonly TemplateMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly addGenerationPrompt: boolean;
};

/** How tool arguments, or absent content, are handed to a template: templates differ in what they take. */
export type TemplateMessage = ChatMessage & {
  /** Arguments as an object (default) or as their JSON text. */
  readonly argumentsAs?: 'object' | 'text';
  /** Absent content as the empty string (default) or as null. */
  readonly emptyContentAs?: 'text' | 'null';
};

/** A compiled chat template: one conversation to one text. */
export interface ChatTemplate {
  /** The template's text, for digests and for recognising a family. */
  readonly source: string;
  /** @throws TemplateRefusal when the template raises an exception, or needs something that is not there. */
  render(input: TemplateInput): string;
}

/** The template does not take this conversation; the message is the template's own. */
export class TemplateRefusal extends Error {
  override readonly name = 'TemplateRefusal';
}
