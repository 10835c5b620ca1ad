import { useMutation, useQueryClient } from "@tanstack/react-query";

import { type NotificationLink, useNotify } from "../components/notify";
import { type Problem, toProblem } from "./problem";

interface ActionOptions<In, Out> {
  send: (input: In) => Promise<Out>;
  /** Text of the notification after success. */
  successMessage?: (output: Out, input: In) => string;
  /** Link of that notification. */
  successLink?: (output: Out, input: In) => NotificationLink | undefined;
  /** Cache keys to refetch after success. */
  invalidates?: readonly (readonly unknown[])[];
  onSuccess?: (output: Out, input: In) => void;
  /** Handles a problem in the page. If it returns true, no notification is shown. */
  onProblem?: (problem: Problem) => boolean;
}

/** Sends a change, notifies the user of the result and refetches what the change affects. */
export function useAction<In = void, Out = unknown>({
  send,
  successMessage,
  successLink,
  invalidates,
  onSuccess,
  onProblem,
}: ActionOptions<In, Out>) {
  const client = useQueryClient();
  const notify = useNotify();
  return useMutation<Out, unknown, In>({
    mutationFn: send,
    onSuccess: (output, input) => {
      for (const queryKey of invalidates ?? []) void client.invalidateQueries({ queryKey });
      if (successMessage)
        notify.success(successMessage(output, input), successLink?.(output, input));
      onSuccess?.(output, input);
    },
    onError: (error) => {
      const problem = toProblem(error);
      if (problem.code === "notAuthenticated" || onProblem?.(problem)) return;
      notify.problem(problem);
    },
  });
}
