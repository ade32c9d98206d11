import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

/** Searchable facts of a run. A server must know them before a run starts: see `registerSearchAttributes`. */
export const SEARCH_ATTRIBUTES = {
  phase: defineSearchAttributeKey('StillroomPhase', SearchAttributeType.KEYWORD),
  waitingFor: defineSearchAttributeKey('StillroomWaitingFor', SearchAttributeType.KEYWORD),
  student: defineSearchAttributeKey('StillroomStudent', SearchAttributeType.KEYWORD),
  teacher: defineSearchAttributeKey('StillroomTeacher', SearchAttributeType.KEYWORD),
  step: defineSearchAttributeKey('StillroomStep', SearchAttributeType.INT),
  solveRate: defineSearchAttributeKey('StillroomSolveRate', SearchAttributeType.DOUBLE),
  spentUsd: defineSearchAttributeKey('StillroomSpentUsd', SearchAttributeType.DOUBLE),
} as const;
