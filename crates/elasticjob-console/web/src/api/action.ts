import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNotify } from "../components/notify";
import { type Problem, toProblem } from "./problem";

interface ActionOptions<In, Out> {
  /** What is sent. */
  send: (input: In) => Promise<Out>;
  /** What is said when it is done. */
  successMessage?: (output: Out, input: In) => string;
  /** Which of what is shown is looked at again. */
  invalidates?: readonly (readonly unknown[])[];
  /** What the page does next. */
  onSuccess?: (output: Out, input: In) => void;
  /** Says it elsewhere, and returns true. */
  onProblem?: (problem: Problem) => boolean;
}

/** A change: sent, told, and what it touched looked at again. */
export function useAction<In = void, Out = unknown>({
  send,
  successMessage,
  invalidates,
  onSuccess,
  onProblem,
}: ActionOptions<In, Out>) {
  const client = useQueryClient();
  const tell = useNotify();
  return useMutation<Out, unknown, In>({
    mutationFn: send,
    onSuccess: (output, input) => {
      for (const queryKey of invalidates ?? []) void client.invalidateQueries({ queryKey });
      if (successMessage) tell.success(successMessage(output, input));
      onSuccess?.(output, input);
    },
    onError: (error) => {
      const problem = toProblem(error);
      if (problem.code === "notAuthenticated" || onProblem?.(problem)) return;
      tell.problem(problem);
    },
  });
}
