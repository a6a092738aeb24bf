(ns tidegate.cross-check
  "Answers a query from the facts themselves, where Datalevin is known to answer wrongly: a query with
  rules always, any other where the planner found nothing. It is bounded by the number of facts and of
  steps; beyond that, and for what `evaluation` does not know, the answer is Datalevin's."
  (:require
   [clojure.edn :as edn]
   [datalevin.core :as d]
   [datalevin.interface :as i]
   [tidegate.evaluation :as evaluation :refer [leave plain?]]
   [tidegate.scopes :as scopes :refer [variable?]]
   [tidegate.values :refer [refuse]])
  (:import
   [java.util LinkedHashMap]))

(def ^:private most-facts 10000)
(def ^:private most-steps 200000)
(def ^:private most-answers 10000)
(def ^:private most-remembered 512)

;; Inputs, and what is asked of the solutions.

(defn- known-input
  "The bindings that an input makes, several of them."
  [name x]
  (cond
    ('#{$ %} name) [{}]
    (and (variable? name) (plain? x)) [{name x}]
    (not (and (vector? name) (sequential? x))) (leave)
    (= '... (peek name)) (if (every? plain? x)
                           (distinct (map (fn [each] {(first name) each}) x))
                           (leave))
    (every? variable? name) (if (and (= (count name) (count x)) (every? plain? x))
                              [(zipmap name x)]
                              (leave))
    (and (vector? (first name)) (= 1 (count name)) (every? variable? (first name)))
    (if (every? #(and (sequential? %) (= (count (first name)) (count %)) (every? plain? %)) x)
      (distinct (map #(zipmap (first name) %) x))
      (leave))
    :else (leave)))

(defn- environments [in inputs]
  (when-not (apply distinct? (or (seq (filter variable? (tree-seq coll? seq in))) [nil])) (leave))
  (reduce (fn [envs [name x]]
            (let [more (known-input name x)]
              (for [env envs each more] (merge env each))))
          [{}] (map vector (rest in) inputs)))

(defn- pull? [element] (and (seq? element) (= 'pull (first element))))

(defn- known-find [element]
  (when (and (seq? element)
             (or (#{'pull 'aggregate} (first element)) (not-every? #(not= '$ %) element)))
    (leave))
  (when (vector? element) (run! known-find element)))

(defn- asked
  "The answer of `:find` and what follows it, by the engine itself, over a relation."
  [given names rows]
  (d/q (-> given (dissoc :in :where) (assoc :in [[names]])) rows))

(defn- shown
  "The answer of a query of which the rows are known; pulls are made for them."
  [conn {:keys [find] :as given} names rows]
  (if (and (some pull? find) (every? #(or (pull? %) (variable? %)) find)
           (every? #{:find :in :where :with} (keys given)))
    (let [entity (fn [element] (if (pull? element) (last (butlast element)) element))
          db (d/db conn)]
      (mapv (fn [row]
              (mapv (fn [element x]
                      (if (pull? element)
                        (let [pattern (last element)]
                          (if (symbol? pattern) (leave) (d/pull db pattern x)))
                        x))
                    find row))
            (asked (assoc given :find (mapv entity find)) names rows)))
    (do (run! known-find find)
        (asked given names rows))))

(defn- answered
  "The answer of a query over the facts of its attributes, in a list."
  [conn schema {:keys [in] :as given} inputs clauses rules]
  (let [attributes (distinct (map :a (evaluation/all-of
                                      :pattern (concat clauses (mapcat :clauses (mapcat :branches (vals rules)))))))
        ;; The order of UUIDs is another one in Java than in the index, and bytes are not compared.
        _ (when (or (empty? attributes)
                    (some #(#{:db.type/uuid :db.type/bytes :db.type/vec :db.type/idoc}
                            (get-in schema [% :db/valueType]))
                          attributes))
            (leave))
        world (evaluation/world-of (evaluation/indexed (d/db conn) attributes most-facts) rules
                                   most-steps)
        envs (environments in inputs)
        names (vec (sort (into (set (mapcat keys envs)) (mapcat evaluation/positive) clauses)))
        found (evaluation/solutions world envs (set names) clauses)]
    (when (> (count found) (long most-answers)) (leave))
    (list (shown conn given names (mapv (fn [env] (mapv #(get env %) names)) found)))))

(defn- rules-of [in inputs]
  (let [given (some (fn [[name x]] (when (= '% name) x)) (map vector (rest in) inputs))]
    (if (string? given) (edn/read-string given) given)))

;; Rules.

(defn- refuse-beyond
  "Refuse a query of which the rules are not evaluated here, and by Datalevin wrongly."
  [why remote?]
  (refuse :invalid-request
          (str "Datalevin answers rules like these wrongly, and Tidegate evaluates them itself only "
               (case why
                 :large (str "over at most " most-facts " facts and in " most-steps " steps, which"
                             " they exceed.")
                 "with patterns and functions of values.")
               " Write each branch of a rule with clauses that share variables, without `not`, `or`,"
               " `_` or constants among the arguments of rules; those can stand in the query itself."
               (when remote?
                 (str " On a server a branch may also call one rule only, and compute nothing"
                      " beside it.")))))

(defn answer-by-rules
  "The answer of a query that calls rules, in a list; nil if it is Datalevin's to give. Refuses a rule
  that denies itself, which has no meaning, and what is answered rightly by no one."
  [conn schema {:keys [in where] :as given} inputs remote?]
  (let [rules (rules-of in inputs)
        right? (if remote? scopes/linear-rules? scopes/plain-rules?)]
    (try
      (let [known (evaluation/with-circles (evaluation/known-rules rules))
            _ (when-let [rule (evaluation/denies-itself known)]
                (refuse :invalid-request
                        (str "The rule `" rule "` holds where it does not hold itself: a `not` in it"
                             " leads back to it. Write what is denied as a rule of its own.")))
            clauses (evaluation/known-clauses (set (keys known)) where)]
        (answered conn schema given inputs clauses known))
      (catch clojure.lang.ExceptionInfo e
        (let [why (evaluation/left e)]
          (when-not why (throw e))
          (when-not (right? rules) (refuse-beyond why remote?))))
      (catch StackOverflowError _
        (when-not (right? rules) (refuse-beyond :large remote?))))))

;; Empty answers.

(defn- missing?
  "Whether a pattern by itself has no fact: then the empty answer is right, and nothing is loaded. A
  decimal is not looked up, since the index takes 2.5 and 2.50 for two."
  [db env {:keys [e a v]}]
  (let [e (get env e e) v (get env v v)]
    (and (plain? v) (not (decimal? v))
         (empty? (d/search-datoms db (when (integer? e) e) a v)))))

(defn- computed [conn schema {:keys [in where] :as given} inputs]
  (let [db (d/db conn)
        clauses (evaluation/known-clauses #{} where)
        env (let [envs (environments in inputs)] (if (next envs) {} (first envs)))]
    (when-not (some #(missing? db env %) (filter #(= :pattern (:kind %)) clauses))
      (first (answered conn schema given inputs clauses {})))))

;; Queries whose empty answer was right at the last transaction.

(def ^:private remembered
  (proxy [LinkedHashMap] [16 0.75 true]
    (removeEldestEntry [_] (> (.size ^LinkedHashMap this) (long most-remembered)))))

(defn answer
  "What the facts answer to a query for which the planner found nothing, in a list; nil if that is
  right, or is not known."
  [conn schema given inputs]
  ;; By its hash, since inputs may be long: two of one hash only lack the comparison.
  (let [db (d/db conn)
        key (hash [(i/dir (:store db)) given (vec inputs)])
        at (:max-tx db)]
    (when-not (= at (locking remembered (.get ^LinkedHashMap remembered key)))
      (let [found (try
                    (computed conn schema given inputs)
                    (catch Exception _ nil)
                    (catch StackOverflowError _ nil))]
        (if (or (nil? found) (and (coll? found) (empty? found)))
          (do (locking remembered (.put ^LinkedHashMap remembered key at)) nil)
          (list found))))))
