import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTell } from "../parts/tell";
import { asProblem, type Problem } from "./problem";

interface Act<In, Out> {
  /** What is sent. */
  run: (input: In) => Promise<Out>;
  /** What is said when it is done. */
  done?: (output: Out, input: In) => string;
  /** Which of what is shown is looked at again. */
  touches?: readonly (readonly unknown[])[];
  /** What the page does next. */
  after?: (output: Out, input: In) => void;
  /** Says it elsewhere, and returns true. */
  failed?: (problem: Problem) => boolean;
}

/** A change: sent, told, and what it touched looked at again. */
export function useAct<In = void, Out = unknown>({
  run,
  done,
  touches,
  after,
  failed,
}: Act<In, Out>) {
  const client = useQueryClient();
  const tell = useTell();
  return useMutation<Out, unknown, In>({
    mutationFn: run,
    onSuccess: (output, input) => {
      for (const queryKey of touches ?? []) void client.invalidateQueries({ queryKey });
      if (done) tell.done(done(output, input));
      after?.(output, input);
    },
    onError: (error) => {
      const problem = asProblem(error);
      if (problem.code === "notAuthenticated" || failed?.(problem)) return;
      tell.failed(problem);
    },
  });
}
