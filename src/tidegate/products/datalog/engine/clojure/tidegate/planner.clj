(ns tidegate.planner
  "Replaces, in this process, the functions of Datalevin 1.2.8 that make its answers wrong."
  (:require
   [datalevin.query.execute]
   [datalevin.query.optimizer.graph :as graph]
   [datalevin.relation :as relation]
   [datalevin.rules :as rules])
  (:import
   [java.util HashSet List]))

(defn- calls
  "How many calls of the rules of `names` a form has."
  [names form]
  (count (filter #(and (sequential? %) (names (first %))) (tree-seq sequential? seq form))))

(defn- once?
  "Whether each branch calls the rules that it is recursive with once."
  [stratum branches]
  (let [names (set stratum)]
    (every? (fn [branch] (every? #(= 1 (calls names (rest %))) branch)) (vals branches))))

(defn- seen-of [rel]
  (let [size (if-let [^List found (:tuples rel)] (.size found) 0)
        seen (HashSet. (int (max 16 (* 4 size))))]
    (relation/add-to-seen! rel seen)
    seen))

(defn- from-all
  "Derive until nothing is new, each time from all that is known."
  [totals stratum context rel-of branches resolve-clause]
  (let [seen (into {} (map (fn [rule] [rule (seen-of (totals rule))])) stratum)]
    (loop [totals totals]
      (let [context (assoc context :rule-rels (rel-of totals))
            found (into {}
                        (keep (fn [rule]
                                (when-let [its (branches rule)]
                                  (let [rel (#'rules/eval-rule-body-with-dedup
                                             context rule its resolve-clause (seen rule))]
                                    (when (and rel (relation/rel-not-empty rel)) [rule rel])))))
                        stratum)]
        (if (empty? found)
          totals
          (recur (merge-with relation/sum-rel totals found)))))))

(defn- fixed-point
  "The engine derives the next facts of a rule from the last ones alone. That is right where a branch
  calls the rule once; where it calls it twice, a last fact meets no older one."
  [engines-own]
  (fn [totals recursive? stratum context renamed seeds base nothing branches & more]
    (if (or (not recursive?) (once? stratum branches))
      (apply engines-own totals recursive? stratum context renamed seeds base nothing branches more)
      (from-all totals stratum
                (assoc context :rules renamed :rels seeds :rule-totals base)
                #(merge base nothing %) branches (last more)))))

(defn correct!
  "Replace them, in every thread."
  []
  ;; It takes variables for unused that are not.
  (alter-var-root #'datalevin.query.execute/rewrite-unused-vars (constantly identity))
  ;; In the middle of a plan it searches for what an `or-join` adds, and forgets what it shares.
  (alter-var-root #'graph/or-join-optimizable? (constantly (constantly nil)))
  ;; It keeps the last facts only of a rule that counts.
  (alter-var-root #'rules/*auto-optimize-temporal* (constantly false))
  (alter-var-root #'rules/run-stratum-fixpoint fixed-point))
