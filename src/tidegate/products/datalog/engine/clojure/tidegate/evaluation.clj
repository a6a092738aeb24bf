(ns tidegate.evaluation
  "Evaluates clauses and rules over the facts themselves; the planner and the indexes of Datalevin have
  no part in it.

  Clause after clause is joined to a set of environments, which keep the variables that are needed
  still; each that is made counts as a step. Rules that call themselves are derived bottom up, each time
  from what the last round found; all others are tried where they are called. What is not known here, or
  takes too many steps, is left: other sources than `$`, functions that take the database, attributes
  that are variables."
  (:require
   [datalevin.built-ins :as built-ins]
   [datalevin.core :as d]
   [tidegate.scopes :as scopes :refer [variable?]])
  (:import
   [clojure.lang PersistentQueue]))

(defn leave
  "Give up: the answer is not known here."
  []
  (throw (ex-info "" {::left :unknown})))

(defn- leave-as-large [] (throw (ex-info "" {::left :large})))

(defn left
  "Why the evaluation was given up, `:unknown` or `:large`; nil for another error."
  [error]
  (::left (ex-data error)))

(defn- blank? [x] (= '_ x))

(defn plain?
  "Whether a value is the same in a fact, a query and a comparison."
  [x]
  (or (number? x) (string? x) (keyword? x) (boolean? x) (inst? x) (uuid? x)))

;; The clauses, as maps of their kind; what is not known leaves.

(declare known-clauses)

(defn- known-pattern [clause]
  (let [[e a x & more] (if (= '$ (first clause)) (rest clause) clause)
        x (if (nil? x) '_ x)]
    (when-not (and (nil? more) (keyword? a)
                   (or (variable? e) (blank? e) (integer? e))
                   (or (variable? x) (blank? x) (plain? x)))
      (leave))
    {:kind :pattern :e e :a a :v x}))

(defn- known-call [[[f & args] binding & more]]
  (let [f* (get built-ins/query-fns f)]
    (when-not (and f* (nil? more) (or (nil? binding) (variable? binding))
                   (every? #(or (variable? %) (plain? %)) args))
      (leave))
    {:kind :call :f f* :args args :binding binding}))

(defn- known-rule [names [rule & args]]
  (when-not (and (names rule) (every? #(or (variable? %) (blank? %) (plain? %)) args)) (leave))
  {:kind :rule :rule rule :args (vec args)})

(defn- known-clause [names clause]
  (let [head (when (seq? clause) (first clause))
        inner #(known-clauses names %)]
    (cond
      (and (vector? clause) (seq? (first clause))) (known-call clause)
      (vector? clause) (known-pattern clause)
      (= 'and head) {:kind :and :clauses (inner (rest clause))}
      (= 'not head) {:kind :not :clauses (inner (rest clause))}
      (= 'or head) {:kind :or :branches (mapv #(inner [%]) (rest clause))}
      (= 'not-join head) {:kind :not :join (vec (scopes/variables (second clause)))
                          :clauses (inner (nnext clause))}
      (= 'or-join head) {:kind :or :join (vec (scopes/variables (second clause)))
                         :branches (mapv #(inner [%]) (nnext clause))}
      (symbol? head) (known-rule names clause)
      :else (leave))))

(defn known-clauses
  "Clauses as this evaluator knows them. `names` are those of the rules. Leaves what it does not know."
  [names clauses]
  (mapv #(known-clause names %) clauses))

(defn known-rules
  "The branches of rules by name: the variables of the head, and the clauses."
  [rules]
  (let [names (into #{} (map ffirst) rules)]
    (reduce (fn [all [[rule & args] & clauses]]
              (update all rule (fnil conj [])
                      {:head (vec (scopes/variables args)) :given (vec (flatten args))
                       :clauses (known-clauses names clauses)}))
            {} rules)))

(defn- parts-of [{:keys [clauses branches]}] (concat clauses (apply concat branches)))

(defn all-of
  "All clauses of a kind, whatever they are in."
  [kind clauses]
  (filter #(= kind (:kind %)) (mapcat #(tree-seq (comp seq parts-of) parts-of %) clauses)))

(defn positive
  "The variables that a clause shares with those beside it."
  [{:keys [kind e v args binding clauses branches join]}]
  (filter variable?
          (case kind
            :pattern [e v]
            :call (cons binding args)
            :rule args
            :and (mapcat positive clauses)
            :not (or join [])
            :or (or join (mapcat #(mapcat positive %) branches)))))

(defn- mentioned
  "The variables in clauses, except those that a join keeps to itself."
  [clauses]
  (mapcat (fn [{:keys [kind join clauses] :as clause}]
            (if (and (= :not kind) (nil? join)) (mentioned clauses) (positive clause)))
          clauses))

;; Which rules a rule calls.

(defn- called [clauses] (into #{} (map :rule) (all-of :rule clauses)))

(defn- denied [clauses]
  (into #{} (mapcat #(called (:clauses %))) (all-of :not clauses)))

(defn- reached
  "The rules that a rule leads to."
  [calls rule]
  (loop [found #{} left (into PersistentQueue/EMPTY (calls rule))]
    (if-let [each (peek left)]
      (if (found each)
        (recur found (pop left))
        (recur (conj found each) (into (pop left) (calls each))))
      found)))

(defn- calls-of [rules]
  (update-vals rules (fn [branches] (into #{} (mapcat #(called (:clauses %))) branches))))

(defn with-circles
  "Rules by name, each with `:branches`, and `:circle`: the rules that it is recursive with, or nil."
  [rules]
  (let [reach (let [calls (calls-of rules)]
                (into {} (map (fn [rule] [rule (reached calls rule)])) (keys rules)))]
    (into {} (map (fn [[rule branches]]
                    [rule {:branches branches
                           :circle (when ((reach rule) rule)
                                     (into #{} (filter #((reach %) rule)) (reach rule)))}]))
          rules)))

(defn denies-itself
  "The name of a rule that holds where it does not; nil if there is none."
  [rules]
  (some (fn [[rule {:keys [circle branches]}]]
          (when (and circle (some #(some circle (denied (:clauses %))) branches)) rule))
        rules))

;; The search, over sets of environments that have the same variables. `world` has `:facts`, `:rules`,
;; `:tables` (a volatile: tuples of rules by name), `:steps` and `:most-steps`.

(defn- step!
  "Count an environment that is made."
  [{:keys [steps most-steps]}]
  (when (> (long (vswap! steps inc)) (long most-steps)) (leave-as-large)))

(defn- known? [known x] (or (not (symbol? x)) (contains? known x)))

(defn- value-of [env x] (if (symbol? x) (get env x) x))

(defn- unified [env x value]
  (cond
    (blank? x) env
    (or (not (symbol? x)) (contains? env x)) (when (= value (value-of env x)) env)
    :else (assoc env x value)))

(defn- all-unified [env xs values]
  (loop [env env xs (seq xs) values (seq values)]
    (if (and env xs)
      (recur (unified env (first xs) (first values)) (next xs) (next values))
      env)))

(declare solutions table-of)

(defn- table-for
  "Tuples that a clause joins with: facts of an attribute, or what a recursive rule derives."
  [{:keys [facts] :as world} {:keys [kind a rule from]}]
  (if (= :pattern kind) (get facts a) (or from (table-of world rule))))

(defn- terms [{:keys [kind e v args]}] (if (= :pattern kind) [e v] args))

(defn- known-place
  "The place of a tuple by which it is looked up; nil if none is known."
  [known xs]
  (first (filter #(let [x (xs %)] (and (not (blank? x)) (known? known x))) (range (count xs)))))

(def ^:private never Long/MAX_VALUE)
(def ^:private late 100000)

(defn- cost
  "How soon a clause is tried: calls as soon as they can be, `not` when what it shares is known."
  [{:keys [rules] :as world} known outside {:keys [kind args clauses join rule] :as clause}]
  (let [joined (fn []
                 (let [{:keys [all by]} (table-for world clause)
                       at (known-place known (vec (terms clause)))]
                   (inc (long (if at (quot (count all) (max 1 (count (get by at)))) (count all))))))]
    (case kind
      :call (if (every? #(known? known %) args) 0 never)
      :pattern (joined)
      :and 1
      :or (if (some known (positive clause)) late (inc late))
      :rule (cond
              (:circle (rules rule)) (joined)
              (some known args) (+ 2 late)
              :else (+ 3 late))
      :not (if (if join
                 (every? known join)
                 (every? #(or (known %) (not (outside %))) (mentioned clauses)))
             0
             never))))

(defn- joined [world known envs clause]
  (let [xs (vec (terms clause))
        {:keys [all by]} (table-for world clause)
        at (known-place known xs)]
    (mapcat (fn [env]
              (keep (fn [tuple]
                      (when-let [found (all-unified env xs tuple)]
                        (step! world)
                        found))
                    (if at (get-in by [at (value-of env (xs at))]) all)))
            envs)))

(defn- called-function [world envs {:keys [f args binding]}]
  (keep (fn [env]
          (step! world)
          (let [said (apply f (map #(value-of env %) args))]
            (if binding
              (when-not (nil? said) (unified env binding said))
              (when said env))))
        envs))

(defn- without
  "The environments for which the clauses of a `not` do not hold."
  [world known envs {:keys [join clauses]}]
  (let [shared (filterv known (distinct (or join (mentioned clauses))))
        inner (into #{} (map #(select-keys % shared)) envs)
        found (set (solutions world inner (set shared) clauses))]
    (remove #(found (select-keys % shared)) envs)))

(defn- joined-with
  "The environments, with what was found for what they share with it."
  [world envs shared found]
  (let [by (group-by #(select-keys % shared) found)]
    (mapcat (fn [env] (map (fn [more] (step! world) (merge env more))
                           (get by (select-keys env shared))))
            envs)))

(defn- either [world known envs {:keys [branches join] :as clause}]
  (let [wanted (set (positive clause))]
    (mapcat (fn [clauses]
              (let [shared (filterv known (if join join (distinct (mentioned clauses))))
                    inner (into #{} (map #(select-keys % shared)) envs)
                    keep (if join wanted (into wanted shared))
                    found (solutions world inner keep clauses)]
                ;; Every branch binds the same, or what follows is not known.
                (when-not (every? #(every? (fn [x] (contains? % x)) wanted) found) (leave))
                (joined-with world envs shared found)))
            branches)))

(defn- tried
  "The environments of a rule that is not recursive, where it is called."
  [{:keys [rules] :as world} known envs {:keys [rule args]}]
  (let [shared (filterv #(and (variable? %) (known %)) (distinct args))
        inner (into #{} (map #(select-keys % shared)) envs)
        tuples (mapcat
                (fn [{:keys [given clauses]}]
                  (when (not= (count given) (count args)) (leave))
                  (let [entered (into #{}
                                      (keep (fn [env]
                                              (reduce (fn [own [x arg]]
                                                        (if (and (not (blank? arg)) (known? env arg))
                                                          (or (unified own x (value-of env arg))
                                                              (reduced nil))
                                                          own))
                                                      {} (map vector given args))))
                                      inner)]
                    (map (fn [found]
                           (when-not (every? #(contains? found %) given) (leave))
                           (mapv found given))
                         (solutions world entered (set given) clauses))))
                (:branches (rules rule)))]
    (joined-with world envs shared (into #{} (keep #(all-unified {} args %)) tuples))))

(defn- solved
  "The environments in which one clause holds, on from `envs`, which have the variables of `known`."
  [{:keys [rules] :as world} known outside envs {:keys [kind clauses rule] :as clause}]
  (case kind
    :pattern (joined world known envs clause)
    :call (called-function world envs clause)
    :rule (if (:circle (rules rule)) (joined world known envs clause) (tried world known envs clause))
    :and (solutions world envs (into outside known) clauses)
    :or (either world known envs clause)
    :not (without world known envs clause)))

(defn solutions
  "The environments, on from `envs`, which have the same variables, in which all clauses hold: with the
  variables of `wanted` alone, each once."
  [world envs wanted clauses]
  (loop [envs (set envs) left (vec clauses)]
    (if (or (empty? envs) (empty? left))
      (into #{} (map #(select-keys % wanted)) envs)
      (let [known (set (keys (first envs)))
            outside (-> known (into wanted) (into (mapcat positive) left))
            costs (mapv #(cost world known outside %) left)
            at (apply min-key costs (range (count left)))
            others (into (subvec left 0 at) (subvec left (inc (long at))))
            needed (-> (set wanted) (into (mapcat positive) others) (into (mentioned others)))]
        (when (= never (costs at)) (leave))
        (recur (into #{} (map #(select-keys % needed))
                     (solved world known outside envs (left at)))
               others)))))

;; Rules that call themselves.

(def ^:private no-tuples {:all [] :by {} :known #{}})

(defn- with-tuples [table tuples]
  (reduce (fn [{:keys [known] :as table} tuple]
            (if (known tuple)
              table
              (reduce (fn [table at] (update-in table [:by at (tuple at)] (fnil conj []) tuple))
                      (-> table (update :all conj tuple) (update :known conj tuple))
                      (range (count tuple)))))
          table tuples))

(defn- from-last
  "The clauses of a branch once for each of its calls within the circle, which then sees what the last
  round found. Calls within an `or` see all, so such a branch stays as it is."
  [circle found clauses]
  (let [own (fn [clause] (and (= :rule (:kind clause)) (circle (:rule clause))))
        places (filter #(own (clauses %)) (range (count clauses)))]
    (if (not= (count places) (count (filter circle (map :rule (all-of :rule clauses)))))
      [clauses]
      (map (fn [at] (assoc-in clauses [at :from] (found (:rule (clauses at))))) places))))

(defn- derived [world {:keys [given clauses]}]
  (map (fn [env]
         (when-not (every? #(contains? env %) given) (leave))
         (mapv env given))
       (solutions world [{}] (set given) clauses)))

(defn- round
  "What the rules of a circle derive, from what the last round found; at first from nothing."
  [{:keys [rules] :as world} circle last-found]
  (into {}
        (map (fn [rule]
               [rule (into #{}
                           (mapcat (fn [{:keys [clauses] :as branch}]
                                     (mapcat #(derived world (assoc branch :clauses %))
                                             (if last-found
                                               (from-last circle last-found clauses)
                                               [clauses]))))
                           (filter #(or (nil? last-found) (some circle (called (:clauses %))))
                                   (:branches (rules rule))))]))
        circle))

(defn- table-of [{:keys [rules tables] :as world} rule]
  (or (get @tables rule)
      (let [{:keys [circle]} (rules rule)]
        (vswap! tables into (map (fn [each] [each no-tuples])) circle)
        (loop [found (round world circle nil)]
          (let [before @tables
                new-found (into {} (map (fn [[each tuples]]
                                          [each (remove (:known (before each)) tuples)]))
                                found)]
            (when (some (comp seq val) new-found)
              (vswap! tables
                      #(reduce-kv (fn [all each tuples] (update all each with-tuples tuples))
                                  % new-found))
              (recur (round world circle
                            (update-vals new-found #(with-tuples no-tuples %)))))))
        (get @tables rule))))

(defn world-of
  "What `solutions` needs. `facts` are pairs of entity and value by attribute, as `indexed` has them."
  [facts rules most-steps]
  {:facts facts :rules rules :tables (volatile! {}) :steps (volatile! 0) :most-steps most-steps})

(defn indexed
  "The facts of attributes, by entity and by value. Leaves if they are more than `most`."
  [db attributes most]
  (let [count-of (fn [a] (try (d/count-datoms db nil a nil)
                              (catch clojure.lang.ExceptionInfo _ (leave))))]
    (when (> (transduce (map #(long (count-of %))) + attributes) (long most)) (leave-as-large))
    (into {}
          (map (fn [a]
                 (let [pairs (mapv (fn [x] [(:e x) (:v x)]) (d/datoms db :ave a))]
                   [a {:all pairs :by {0 (group-by first pairs) 1 (group-by second pairs)}}])))
          attributes)))
