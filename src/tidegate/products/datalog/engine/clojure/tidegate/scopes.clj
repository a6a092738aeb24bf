(ns tidegate.scopes
  "Gives each variable of a query one meaning, and each of a rule's arguments a variable of its own,
  which Datalevin 1.2.8 takes for granted:

  * A variable that `not-join`, `or-join` or a rule does not name among its own is local. The engine
    takes it for one of that name outside, above all for an input.
  * `(r ?a ?a)` and `(r ?a _)` are asked as `(r ?a ?b)`, with a comparison where one is needed: the
    engine ignores that the two are equal, or finds nothing.
  * The branches of a rule have the same head, and no variable twice in it.")

(defn variable? [x] (and (symbol? x) (= \? (first (name x)))))

(defn variables
  "All variables in a form, in the order in which they come."
  [form]
  (distinct (filter variable? (tree-seq coll? seq form))))

(defn rules? [x]
  (and (sequential? x) (every? #(and (sequential? %) (sequential? (first %)) (seq (first %))) x)))

(defn renamed
  "A form in which each variable that `names` has is called otherwise."
  [names form]
  (cond
    (symbol? form) (get names form form)
    (map? form) (into {} (map (fn [[k v]] [(renamed names k) (renamed names v)])) form)
    (vector? form) (mapv #(renamed names %) form)
    (set? form) (into #{} (map #(renamed names %)) form)
    (seq? form) (apply list (map #(renamed names %) form))
    :else form))

(defn- apart-from [fresh shared clauses]
  (renamed (into {} (map (fn [x] [x (fresh)])) (remove (set shared) (variables clauses))) clauses))

(defn with-own-names
  "A `not-join` or `or-join` whose local variables have names that nothing else has; each branch of an
  `or-join` has its own."
  [fresh [head shared & clauses]]
  (let [known (variables shared)]
    (list* head shared
           (if (= 'or-join head)
             (map #(apart-from fresh known %) clauses)
             (apart-from fresh known clauses)))))

(defn equal
  "A clause that compares two variables, which other clauses bind."
  [x other]
  (with-meta [(list '= x other)] {::compares true}))

(defn in-order
  "Clauses with those at the end that need what the others bind: the engine takes a comparison as it
  comes, and asks a `not` that is written first with less than is known."
  [clauses]
  (sort-by (fn [clause]
             (cond
               (::compares (meta clause)) 1
               (and (seq? clause) ('#{not not-join} (first clause))) 2
               :else 0))
           clauses))

(defn call-apart
  "Clauses for a call of a rule, in which each argument is a variable of its own."
  [fresh [rule & args]]
  (loop [seen #{} before [] out [rule] after [] left (seq args)]
    (if-let [[x & more] left]
      (cond
        (= '_ x) (recur seen before (conj out (fresh)) after more)
        (not (variable? x)) (let [known (fresh)]
                              (recur seen (conj before [(list 'ground x) known]) (conj out known)
                                     after more))
        (seen x) (let [other (fresh)]
                   (recur seen before (conj out other) (conj after (equal x other)) more))
        :else (recur (conj seen x) before (conj out x) after more))
      (-> before (conj (apply list out)) (into after)))))

(defn- head-parts
  "The variables of a rule's head that must be known, and the others."
  [[_ & args]]
  (if (sequential? (first args)) [(vec (first args)) (vec (rest args))] [[] (vec args)]))

(defn- with-head
  "A branch with the head of its rule, and local variables of its own."
  [fresh [required free] [head & clauses]]
  (let [given (apply concat (head-parts head))
        wanted (concat required free)
        names (into {} (map vector (reverse given) (reverse wanted)))
        ;; The head has a variable twice: the other place gets its value.
        copies (for [[x now] (map vector given wanted) :when (not= now (names x))]
                 [(list 'identity (names x)) now])
        locals (into {} (map (fn [x] [x (fresh)])) (remove names (variables clauses)))]
    (into [(list* (first head) (if (seq required) (cons required free) free))]
          (concat (renamed (merge locals names) clauses) copies))))

(defn with-own-heads
  "Rules, as lists of branches, in which all branches of a rule have one head."
  [fresh rules]
  (let [heads (reduce (fn [heads [head]]
                        (if (heads (first head))
                          heads
                          (assoc heads (first head)
                                 (mapv (fn [part] (mapv (fn [_] (fresh)) part)) (head-parts head)))))
                      {} rules)]
    (mapv (fn [[head :as branch]] (with-head fresh (heads (first head)) branch)) rules)))

(defn- joined?
  "Whether each clause shares a variable with one before it, in some order."
  [clauses]
  (loop [known nil left (map (comp set variables) clauses)]
    (let [next? (fn [own] (or (nil? known) (empty? own) (some known own)))
          found (first (filter next? left))]
      (cond
        (empty? left) true
        (nil? found) false
        :else (let [[before after] (split-with #(not= found %) left)]
                (recur (into (or known #{}) found) (concat before (rest after))))))))

(defn plain-rules?
  "Whether rules are of the kind that Datalevin evaluates rightly: branches of patterns, calls of
  functions and of rules, each of which shares a variable with the others, and no constant, blank or
  variable twice among the arguments of a rule."
  [rules]
  (every? (fn [[_ & clauses]]
            (and (joined? clauses)
                 (every? (fn [clause]
                           (or (vector? clause)
                               (and (seq? clause) (every? variable? (rest clause))
                                    (apply distinct? clause)
                                    (not ('#{and or not or-join not-join} (first clause))))))
                         clauses)))
          rules))

(defn linear-rules?
  "Whether rules are also of the kind that Datalevin's servers evaluate rightly, whose functions are not
  replaced: at most one call of a rule in a branch, and nothing computed beside it."
  [rules]
  (and (plain-rules? rules)
       (every? (fn [[_ & clauses]]
                 (let [calls (count (filter seq? clauses))]
                   (or (zero? calls)
                       (and (= 1 calls)
                            (not-any? #(and (seq? (first %)) (next %)) (remove seq? clauses))))))
               rules)))
